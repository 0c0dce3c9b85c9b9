"""NVIDIA's tools over a launch of its own, never a timed one: compute-sanitizer, and Nsight Compute's counters."""
