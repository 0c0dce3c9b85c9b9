"""The front door: `python run.py problems/tril_matmul.yaml`."""
# PYTHON_ARGCOMPLETE_OK

import gc
import sys

from harness.cli import main

if __name__ == "__main__":
    status = main(sys.argv[1:])
    gc.freeze()  # else 0.3 s go on looking for garbage among all that PyTorch consists of, only to end
    sys.exit(status)
