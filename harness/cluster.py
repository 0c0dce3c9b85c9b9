"""`harness.cluster.Referees` and `Job`, for programs: candidates judged on many machines. Their code is in `runs.cluster`."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Return what is asked for, imported then: it brings torch with it."""
    return getattr(importlib.import_module("harness.runs.cluster"), name)
