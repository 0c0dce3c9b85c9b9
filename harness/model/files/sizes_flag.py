"""Reads what `--sizes` names: `M=2048` or `M=2048,K=8192`, each time one set of sizes to time at."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.model.errors import InputError
from harness.model.spelling import hint_for


def names_in(texts: Sequence[str]) -> set[str]:
    """The names that the texts give a number to, as far as they do."""
    return {part.partition("=")[0] for text in texts for part in _parts(text)}


def read_sizes(texts: Sequence[str], timed: Mapping[str, int]) -> list[dict[str, int]]:
    """One mapping for each text, in the order of `timed`, with its values where a text is silent. Raises InputError."""
    chosen = [_one(text, timed) for text in texts]
    for text, sizes in zip(texts, chosen):
        if chosen.count(sizes) > 1:
            raise InputError(f"--sizes {text} stands there twice", hint="Once is enough")
    return chosen


def _one(text: str, timed: Mapping[str, int]) -> dict[str, int]:
    example = ",".join(f"{name}={value}" for name, value in timed.items())
    found: dict[str, int] = {}
    for part in _parts(text):
        name, equals, number = part.partition("=")
        if not equals or not re.fullmatch(r"[0-9]+", number) or int(number) < 1:
            said = f"--sizes {text}: '{part}' is no NAME=NUMBER, a whole number of at least 1"
            raise InputError(said, hint=f"As in --sizes {example}")
        if name not in timed:
            hint = hint_for(name, list(timed), "Its sizes are")
            raise InputError(f"--sizes {text}: '{name}' is no size of this problem", hint=hint)
        if name in found:
            raise InputError(f"--sizes {text} gives {name} twice", hint=f"As in --sizes {example}")
        found[name] = int(number)
    return {name: found.get(name, value) for name, value in timed.items()}


def _parts(text: str) -> list[str]:
    return re.split(r"[,\s]+", text.strip(", "))
