"""One file per verb of the command line; each takes parsed flags and returns an exit code."""
