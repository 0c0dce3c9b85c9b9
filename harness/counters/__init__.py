"""Hardware counters of a candidate's kernels, read by Nsight Compute (ncu) over one launch of its own; never of a launch
that is timed.
"""
