"""`python -m harness.tools.sanitizer.start_sanitizer FD FOLDER TOOL PROGRAM`: become compute-sanitizer, behind the
sandbox.

What is started behind the sandbox is a module of ours; this one hands its process over to the tool, which starts the
program that it watches.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.model.places import python_of
from harness.tools.sanitizer.compute_sanitizer import command


def main(folder: str, tool: str, program: str) -> None:
    target = python_of("harness.tools.sanitizer.watched_call", folder)
    words = command(program, tool, Path(folder, f"{tool}.txt"), target)
    os.execv(words[0], words)


if __name__ == "__main__":
    main(*sys.argv[2:5])
