"""The front door: `python run.py problems/tril_matmul.yaml`."""
# PYTHON_ARGCOMPLETE_OK

import atexit
import os
import sys
from contextlib import suppress

from harness.cli import main

status = 1  # what ends with a traceback ends with this


def end_at_once() -> None:
    """Leave what PyTorch consists of to the system: taking it apart piece by piece takes half a second."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or never there
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    atexit.register(end_at_once)  # before all others are, and so called after them
    try:
        status = main(sys.argv[1:])
    except SystemExit as ending:  # argparse's: --help, and flags that it does not know
        status = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
