"""`run.py cache`: what the cache of builds holds, and clearing it."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Sequence

from tabulate import tabulate

from harness.build.cache import default_root
from harness.build.cache_space import LIMIT_VARIABLE, Holding, holdings, limit_bytes, remove
from harness.model.errors import InputError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def run(options: argparse.Namespace) -> int:
    """Show the cache, or clear it. Returns 0. Raises InputError for an age or a limit that cannot be read."""
    root, limit = default_root().expanduser().resolve(), limit_bytes()
    older_s = age_s(options.older_than) if options.older_than is not None else None
    held, chosen, gone = holdings(root), [], []
    if options.clear or older_s is not None:
        now_s = time.time()
        chosen = [each for each in held if older_s is None or now_s - each.used_s >= older_s]
        gone = remove(root, chosen)
        held = holdings(root)
    kept_in_use = len(chosen) - len(gone)
    if options.json:
        print(json.dumps({
            "path": str(root), "limit_bytes": limit, "size_bytes": _size(held), "entries": len(held),
            "kinds": {kind: {"entries": len(of), "size_bytes": _size(of)} for kind, of in _by_kind(held).items()},
            "removed": len(gone), "removed_bytes": _size(gone), "in_use": kept_in_use,
        }))
        return 0
    if options.clear or older_s is not None:
        print(f"Removed {_count(len(gone))}, {size_text(_size(gone))}.")
        if kept_in_use:
            print(f"{_count(kept_in_use)} stayed: a run that is under way may be using them.")
    now_s = time.time()
    rows = [[kind, len(of), size_text(_size(of)), _ago(now_s - of[-1].used_s)] for kind, of in _by_kind(held).items()]
    rows.append(["all", len(held), f"{size_text(_size(held))} of {size_text(limit)}", ""])
    print(tabulate(rows, ["kind", "entries", "size", "last used"], colalign=("left", "right", "right", "right")))
    print(f"\nIn {root}; {LIMIT_VARIABLE} sets the limit, KERNEL_REFEREE_CACHE the place.")
    return 0


def age_s(text: str) -> float:
    """An age like 30d, 12h or 2w in seconds. Raises InputError for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if match is None:
        raise InputError(f"{text!r} is no age", hint="Write it like 30d, 12h or 2w")
    return float(match[1]) * _SECONDS[match[2]]


def size_text(size_bytes: float) -> str:
    """A size as people read it: "0 B", "12.3 MB"."""
    for unit in ("B", "KB", "MB"):
        if size_bytes < 1024:
            return f"{size_bytes:.3g} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.3g} GB"


def _by_kind(held: Sequence[Holding]) -> dict[str, list[Holding]]:
    return {kind: [each for each in held if each.kind == kind] for kind in sorted({each.kind for each in held})}


def _size(held: Sequence[Holding]) -> int:
    return sum(each.size_bytes for each in held)


def _count(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"


def _ago(seconds: float) -> str:
    unit = next((each for each in "wdhm" if seconds >= _SECONDS[each]), None)
    return f"{seconds / _SECONDS[unit]:.0f}{unit} ago" if unit else "just now"
