"""Which kernels ran in a launch, and whose they were."""
