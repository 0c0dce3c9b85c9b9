"""`python -m harness.counters.inside FD FOLDER PROGRAM`: become ncu, behind the wall.

What is started behind the wall is a module of ours; this one hands its process over to the tool, which starts the
program that it watches.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.counters.tool import command
from harness.places import python_of

REPORT = "counters.csv"


def main(folder: str, program: str) -> None:
    target = python_of("harness.counters.under_tool", folder)
    words = command(program, Path(folder, REPORT), target)
    os.execv(words[0], words)


if __name__ == "__main__":
    main(*sys.argv[2:4])
