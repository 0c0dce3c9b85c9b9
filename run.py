"""The front door of a checkout: `python run.py problems/tril_matmul.yaml`."""
# PYTHON_ARGCOMPLETE_OK

from harness.cli import as_process

if __name__ == "__main__":
    as_process()
