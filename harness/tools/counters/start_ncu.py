"""`python -m harness.tools.counters.start_ncu FD FOLDER PROGRAM`: become ncu, behind the sandbox.

What is started behind the sandbox is a module of ours; this one hands its process over to the tool, which starts the
program that it watches.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.model.places import python_of
from harness.tools.counters.ncu import command

REPORT = "counters.csv"


def main(folder: str, program: str) -> None:
    target = python_of("harness.tools.counters.watched_call", folder)
    words = command(program, Path(folder, REPORT), target)
    os.execv(words[0], words)


if __name__ == "__main__":
    main(*sys.argv[2:4])
