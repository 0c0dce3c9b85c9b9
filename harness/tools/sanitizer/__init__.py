"""compute-sanitizer over one small launch of a candidate that has passed its checks: `--sanitize`.

It finds what values alone may not show: accesses out of bounds, races on shared memory, reads of memory that nobody
wrote, barriers that not all threads reach. A candidate can see that it is watched: nothing of the judging rests on it.
"""
