"""Numbers and texts as the terminal shows them: units a person reads, no digit that was not measured."""

from __future__ import annotations

import math
import os
import shutil
import textwrap
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any, TextIO

from harness.model.verdict import Status

if TYPE_CHECKING:
    from harness.results.record import Record
    from harness.timing.stats.trimmed_mean import Interval

_UNITS = (("s", 1e6), ("ms", 1e3), ("µs", 1.0))
_OPEN = ("unsure", "checked", "compiled", "skipped")
STATUS_STYLES = {"ok": "green", **dict.fromkeys(_OPEN, "yellow")}  # others red
CALL_STYLES = {"FASTER": "green", "SLOWER": "red", "UNSURE": "yellow"}
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


def color_wanted(stream: TextIO) -> bool:
    """True for a terminal that shows colours, unless NO_COLOR (https://no-color.org) is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width_of(stream: TextIO) -> int:
    """The columns of a terminal; 140 for a file or a pipe, so that no column is lost in a log."""
    return shutil.get_terminal_size().columns if stream.isatty() else 140


def fitting(stream: TextIO) -> dict[str, Any]:
    """The `width` and `color` of what is drawn for a stream."""
    return {"width": width_of(stream), "color": color_wanted(stream)}


def paint(text: str, style: str, color: bool) -> str:
    """The text in one of bold, dim, red, green, yellow, or as it is when `color` is false."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if color and text else text


def time_text(time_us: float) -> str:
    """A time with its unit: `9.20 µs`, `152 µs`, `2.71 ms`, `61.0 s`."""
    unit, scale = time_unit(time_us)
    return f"{number_text(time_us / scale)} {unit}"


def time_unit(time_us: float) -> tuple[str, float]:
    """The unit for a time, and its length in microseconds; each unit begins at a fifth of itself."""
    return next((unit, scale) for unit, scale in _UNITS if time_us >= 0.2 * scale or scale == 1.0)


def time_column(times_us: Sequence[float | None]) -> tuple[str, list[str]]:
    """One unit for a whole column, and its cells with four digits for the fastest; None is an empty cell."""
    fastest = min((time_us for time_us in times_us if time_us is not None), default=None)
    if fastest is None:
        return "", ["" for _ in times_us]
    unit, scale = time_unit(fastest)
    return unit, number_column([None if each is None else each / scale for each in times_us], digits=4)


def number_column(values: Sequence[float | None], digits: int = 3) -> list[str]:
    """Cells with the decimals that show `digits` digits of the smallest value; None is an empty cell."""
    smallest = min((abs(value) for value in values if value), default=1.0)
    decimals = _decimals(smallest, digits)
    return ["" if value is None else f"{value:,.{decimals}f}" for value in values]


def number_text(value: float, digits: int = 3) -> str:
    """A number with `digits` significant digits, never in exponent form below a million."""
    return f"{value:.2e}" if abs(value) >= 1e7 else f"{value:,.{_decimals(abs(value), digits)}f}"


def units_text(error_u: float | None) -> str:
    """An error in u: whole from 10, one decimal below, `0` only for exactly zero, empty for None."""
    if error_u is None or error_u == 0:
        return "" if error_u is None else "0"
    if error_u >= 1e7:
        return f"{error_u:.1e}"
    return f"{error_u:,.0f}" if error_u >= 10 else "<0.1" if error_u < 0.1 else f"{error_u:.1f}"


def percent_text(percent: float | None) -> str:
    """One decimal; empty for None; what would round to zero is `<0.1`."""
    return "" if percent is None else "<0.1" if 0 < percent < 0.05 else f"{percent:.1f}"


_BEYOND = 1000


def ratio_text(ratio: float | None, lo: float | None = None, hi: float | None = None) -> str:
    """`1.384× [1.380, 1.389]`; the ends are rounded outwards, so that no more is claimed than measured."""
    if ratio is None:
        return ""
    decimals = max(1, _decimals(ratio, 4 if ratio >= 1 else 3)) if ratio > 0 else 3
    text = f"{_rounded(ratio, decimals, ROUND_HALF_EVEN)}×"
    if lo is None or hi is None:
        return text
    # Of so few rounds that scatter so much, no more is known of that end; its digits would only be wide.
    upper = "∞" if hi >= _BEYOND * ratio else _rounded(hi, decimals, ROUND_CEILING)
    return f"{text} [{_rounded(lo, decimals, ROUND_FLOOR)}, {upper}]"


def interval_text(interval: Interval | None) -> str:
    return "" if interval is None else ratio_text(interval.estimate, interval.lo, interval.hi)


def speedup_text(record: Record) -> str:
    """The speedup of a record with its interval."""
    return ratio_text(record.speedup, record.speedup_lo, record.speedup_hi)


def baseline_word(record: Record, wanted: str | None) -> str | None:
    """What the row of a baseline that is ok has for its status, in a table that ranks the class `wanted`; else None."""
    if record.role != "baseline" or record.status is not Status.OK:
        return None
    outside = None not in (record.precision_class, wanted) and record.precision_class != wanted
    return "outside class" if outside else "baseline"


def eager_error(record: Record) -> float | None:
    """Eager's error on the inputs of this row, where the row has one of its own to set against it."""
    return None if record.err_max_u is None or record.candidate == "eager" else record.eager_err_max_u


def built(record: Record) -> str:
    """Its language, and how long the build took or that it was cached."""
    how = "cached" if record.cached else "" if record.build_s is None else seconds_text(record.build_s)
    return ", ".join(part for part in (record.language, how) if part)


def seconds_text(seconds: float) -> str:
    """`0.2 s`, `47.7 s`, `2 min 5 s`."""
    return f"{seconds:.1f} s" if seconds < 99.95 else f"{round(seconds) // 60} min {round(seconds) % 60} s"


def date_text(utc: str) -> str:
    """`2026-05-01T12:30:05Z` → `2026-05-01 12:30 UTC`; what does not look like that stays as it is."""
    return f"{utc[:10]} {utc[11:16]} UTC" if len(utc) >= 16 and utc[10] == "T" else utc


def one_line(text: str) -> str:
    """The text on one line, runs of white space closed up."""
    return " ".join(text.split())


def shortened(name: str, width: int) -> str:
    """The name in at most `width` characters, its middle left out if need be: both ends tell files apart."""
    if len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}…{name[-tail:]}"


def indented(text: str, width: int | None, most_lines: int = 10) -> list[str]:
    """A sentence as lines below a table: two spaces before it, four before the lines that follow.

    Only the first line is wrapped: what follows is a compiler's or a traceback's own layout. Lines beyond
    `most_lines` are counted instead of shown.
    """
    first, *rest = [line.rstrip() for line in text.strip().splitlines() if line.strip()] or [""]
    room = max(40, width) if width else 10_000
    whole = {"break_long_words": False, "break_on_hyphens": False}
    lines = textwrap.wrap(one_line(first), room, initial_indent="  ", subsequent_indent="    ", **whole)
    left_out = len(rest) - most_lines
    lines += ["    " + line for line in (rest[:most_lines] if left_out > 1 else rest)]
    return lines + ([f"    … {left_out} more lines in the CSV"] if left_out > 1 else [])


def _decimals(value: float, digits: int) -> int:
    """Decimals that show `digits` significant digits of a value, at most six."""
    return 0 if not value else min(6, max(0, digits - 1 - math.floor(math.log10(abs(value)))))


def _rounded(value: float, decimals: int, rounding: str) -> Decimal:
    return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-decimals), rounding=rounding)
