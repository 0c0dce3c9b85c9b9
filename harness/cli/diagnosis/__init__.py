"""What this machine has and what it lacks, as findings that `doctor` prints.

`host` looks at the machine without importing torch; `gpu` does import it and tries the GPU out, in a process of its
own, so that a broken driver costs a line and not the report.
"""
