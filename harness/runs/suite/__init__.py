"""Many problems in one command: which they are, whose candidates are whose, one child process for each, one summary."""
