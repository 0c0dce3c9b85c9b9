"""`python -m harness.sanitizer.inside FD FOLDER TOOL PROGRAM`: become compute-sanitizer, behind the wall.

What is started behind the wall is a module of ours; this one hands its process over to the tool, which starts the
program that it watches.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.places import python_of
from harness.sanitizer.tool import command


def main(folder: str, tool: str, program: str) -> None:
    target = python_of("harness.sanitizer.under_tool", folder)
    words = command(program, tool, Path(folder, f"{tool}.txt"), target)
    os.execv(words[0], words)


if __name__ == "__main__":
    main(*sys.argv[2:5])
