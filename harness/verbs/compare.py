"""`run.py compare`: results of several runs side by side."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from harness.compare import compare
from harness.report import terminal


def run(paths: Sequence[Path]) -> int:
    """Print the comparison; raises InputError for what cannot be compared."""
    width = terminal.width_of(sys.stdout)
    print(compare(list(paths)) if width is None else compare(list(paths), width=width))
    return 0
