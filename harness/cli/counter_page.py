"""What ncu counted, as a page: a table for each of the longest kernels, with a sentence on every figure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from harness.attribution.kernel_names import bare_name
from harness.report import terminal
from harness.report.table import Column, table_text
from harness.tools.counters import metrics
from harness.tools.counters.figures import Figure, figures_of, time_us
from harness.tools.counters.measurement import KernelCounters

_MOST_KERNELS = 3
_LONGEST_NAME = 120


def render(title: str, kernels: Sequence[KernelCounters], *, width: int | None, color: bool = False) -> str:
    """The page as text; the kernels that took longest first."""
    ordered = by_time(kernels)
    total_us = sum(time_us(each.values) or 0.0 for each in ordered)
    lines = [terminal.paint(title, "bold", color)]
    for each in ordered[:_MOST_KERNELS]:
        share = 100 * (time_us(each.values) or 0.0) / total_us if total_us else 0.0
        launch = [*_launch(each), f"{share:.0f} % of the call"] if len(ordered) > 1 else _launch(each)
        name = terminal.shortened(each.name, min(_LONGEST_NAME, width or _LONGEST_NAME))
        lines += ["", terminal.paint(name, "bold", color), *terminal.indented(" · ".join(launch), width), ""]
        lines.append(_table(figures_of(each.values), width))
    rest = ordered[_MOST_KERNELS:]
    if rest:
        names = ", ".join(dict.fromkeys(bare_name(each.name) for each in rest))
        lines += ["", *terminal.indented(f"{len(rest)} shorter ones: {names}; --json has them all", width)]
    explained = "Each kernel was repeated until all counters were read, with caches flushed before each time and the " \
        "clocks left as they are; its time is no measurement to rank by. The percentages are of what the unit can " \
        "sustain."
    return "\n".join([*lines, "", *terminal.indented(explained, width)])


def by_time(kernels: Sequence[KernelCounters]) -> list[KernelCounters]:
    """The longest first."""
    return sorted(kernels, key=lambda each: -(time_us(each.values) or 0.0))


def kernels_json(kernels: Sequence[KernelCounters]) -> list[dict[str, Any]]:
    """Every kernel under stable keys: its figures with their sentences, and the counters that were asked for."""
    return [
        {
            "name": each.name, "time_us": time_us(each.values),
            "figures": [
                {"key": figure.key, "value": figure.value, "unit": figure.unit, "sentence": figure.sentence}
                for figure in figures_of(each.values)
            ],
            "counters": {name: each.values[name] for name in metrics.ASKED_FOR if name in each.values},
        }
        for each in by_time(kernels)
    ]


def _launch(kernel: KernelCounters) -> list[str]:
    """How long it took, and how it was launched."""
    values = kernel.values
    took_us = time_us(values)
    parts = [terminal.time_text(took_us)] if took_us is not None else []
    if metrics.GRID in values and metrics.BLOCK in values:
        parts.append(f"{values[metrics.GRID]:,.0f} blocks of {values[metrics.BLOCK]:,.0f}")
    if metrics.REGISTERS in values:
        parts.append(f"{values[metrics.REGISTERS]:.0f} registers")
    if metrics.SHARED_STATIC in values and metrics.SHARED_DYNAMIC in values:
        shared_bytes = values[metrics.SHARED_STATIC] + values[metrics.SHARED_DYNAMIC]
        parts.append(f"{shared_bytes / 1024:.0f} KB shared a block")
    return parts


def _table(figures: Sequence[Figure], width: int | None) -> str:
    room = max(40, (width or 140) - 34)  # what the first two columns leave
    return table_text([
        Column("figure", "left", [each.title for each in figures]),
        Column("", "right", [f"{each.value:.1f}{' ' + each.unit if each.unit else ''}" for each in figures]),
        Column("what it says", "left", ["\n".join(textwrap.wrap(each.sentence, room)) for each in figures]),
    ])
