"""`python -m harness`: the command line, where the command `kernel-referee` is not on the PATH."""
# PYTHON_ARGCOMPLETE_OK

from harness.cli import as_process

if __name__ == "__main__":
    as_process()
