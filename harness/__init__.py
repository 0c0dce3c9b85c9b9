"""A referee for GPU kernels: it builds, checks and times candidates, and ranks only what it could verify."""

__version__ = "0.1.0"
