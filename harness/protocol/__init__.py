"""What crosses the sandbox between judge and worker; of the harness the worker imports nothing else."""
