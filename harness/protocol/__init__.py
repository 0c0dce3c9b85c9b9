"""What crosses the sandbox between judge and worker: frames, slots of raw memory, and the flags that order them."""
