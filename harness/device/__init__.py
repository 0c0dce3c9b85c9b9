"""What the device is, what it is doing, and the referee's half of the launches made on it.

One seam with two twins: `cuda` and `cpu` offer the same bench to the referee, so that nothing above this package
asks which of them it has.
"""
