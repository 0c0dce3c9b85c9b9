"""`harness.cluster.Referees` and `Job`, for programs: candidates judged on many machines. Their code is in `runs.cluster`."""

from __future__ import annotations

from harness.runs.cluster.referees import Job, Referees

__all__ = ["Job", "Referees"]
