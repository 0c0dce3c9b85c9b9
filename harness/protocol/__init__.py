"""What crosses the sandbox between judge and worker: frames, slots of raw memory, and the flags that order them.

Both sides import this package, and the worker nothing else of the harness.
"""
