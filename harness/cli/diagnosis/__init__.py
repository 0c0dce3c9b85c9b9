"""What this machine has and what it lacks, as findings that `doctor` prints.

`host` looks at it without torch; `gpu` tries the GPU out in a process of its own: a broken driver costs one line.
"""
