"""What crosses the sandbox between judge and worker: both import this package, and the worker nothing else of the harness."""
