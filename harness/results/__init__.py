"""Records of runs: what one row holds, how it reaches the disk, and how it is read back."""
