"""What can be measured beside the ranking time, between the flags that ask for it and the names that `referee.extras` has."""

from __future__ import annotations

import argparse


def extras_of(options: argparse.Namespace) -> tuple[str, ...]:
    """The names of what was asked for."""
    return ("energy",) * options.energy + ("times",) * options.extra_times


def extra_words(options: argparse.Namespace) -> list[str]:
    """The flags that ask for it, as one would type them."""
    return ["--energy"] * options.energy + ["--extra-times"] * options.extra_times
