"""Hardware counters of a candidate's kernels, read by Nsight Compute (ncu) over a launch of its own, never timed."""
