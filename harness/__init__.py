"""A referee for GPU kernels: it builds, checks and times candidates, and ranks only what it could verify."""

from __future__ import annotations

import importlib
import os
from typing import Any

__version__ = "0.1.0"
_FOR_PROGRAMS = ("evaluate", "Referee", "Evaluation")


def __getattr__(name: str) -> Any:
    """`harness.evaluate` and its kin, imported when they are asked for: they bring torch with them."""
    if name in _FOR_PROGRAMS:
        importlib.import_module("harness.protocol.clocks.idle_threads").shorten_spinning(os.environ)
        return getattr(importlib.import_module("harness.runs.referee"), name)
    raise AttributeError(f"module 'harness' has no attribute {name!r}")
