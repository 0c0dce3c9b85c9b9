"""The error that programs catch: `harness.errors.HarnessError`, of the caller's or of the machine's fault."""

from __future__ import annotations

from harness.model.errors import HarnessError

__all__ = ["HarnessError"]
