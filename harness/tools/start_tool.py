"""`python -m harness.tools.start_tool FD WORDS…`: become a tool, which starts the program that it watches. What is
started behind the sandbox is a module of ours; this one hands its process over.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    os.execv(sys.argv[2], sys.argv[2:])
