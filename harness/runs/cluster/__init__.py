"""Many machines at once, on Ray: a judge for each GPU of a cluster, builds on any node, and the same for programs.

Ray is imported only where a cluster is asked for. What runs on a node is this harness itself, installed there.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """`Referees` and `Job`, for programs, imported when they are asked for: they bring torch with them."""
    if name in ("Referees", "Job"):
        from harness.runs.cluster import referees

        return getattr(referees, name)
    raise AttributeError(f"module 'harness.runs.cluster' has no attribute {name!r}")
