"""Sizes as a record and every sentence has them; `list` needs no more of records than this."""

from __future__ import annotations

from collections.abc import Mapping


def sizes_text(sizes: Mapping[str, int]) -> str:
    """`{"M": 2048, "K": 8192}` → `M=2048 K=8192`, in the order given."""
    return " ".join(f"{name}={value}" for name, value in sizes.items())
