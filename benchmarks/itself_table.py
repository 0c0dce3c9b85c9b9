"""The table of eager against itself, from the figures of against_itself.py: what came out beside what is aimed at."""

from __future__ import annotations

import math
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from harness.report import terminal  # noqa: E402
from harness.timing.stats import Interval  # noqa: E402
from harness.timing.stats.difference import Scatter, held, seen_at_most  # noqa: E402

Figures = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Target:
    """What is aimed at on an H200 for calls of at least `shortest_us`: shares, a count of 200, seconds."""

    shortest_us: float
    p95: float
    spread: float
    wrong_of_200: int
    seconds: float
    held: float = 0.93


TARGETS = (
    Target(1000.0, 0.0005, 0.001, 1, 3.0), Target(50.0, 0.001, 0.002, 1, 2.0), Target(0.0, 0.0025, 0.004, 2, 2.0),
)


@dataclass(frozen=True)
class Cell:
    """One figure as text; `aim` where something is aimed at, `missed` where it is not reached."""

    head: str
    text: str
    aim: str | None = None
    missed: bool = False

    def __str__(self) -> str:
        return self.text if self.aim is None else f"{self.text} ({self.aim}){' !' if self.missed else ''}"


HEADS = (
    "pair", "n", "p95 distance from 1", "largest / smallest − 1", "FASTER or SLOWER", "hold the mean of all", "hold 1",
    "median interval", "seconds a control",
)


def target_for(time_us: float) -> Target:
    """The targets of the class of durations that a call of `time_us` is in."""
    return next(each for each in TARGETS if time_us >= each.shortest_us)


# Of a candidate that is not eager, whose true ratio is what the mean of all is taken for.
BESIDE_HEADS = (
    "pair", "n", "speedup", "p95 distance from the mean of all", "largest / smallest − 1", "words", "hold the mean of all",
    "median interval", "seconds a row",
)


def is_control(figure: dict[str, Any]) -> bool:
    """Whether it is of eager itself."""
    return figure["name"] == "eager"


def row_of(figures: Figures, size: int, with_targets: bool) -> list[Cell]:
    """The cells of one size, in the order of `HEADS`; without figures the last one says why there are none."""
    of_size = [each for each in figures if each["size"] == size and is_control(each)]
    good = [each for each in of_size if "ratio" in each]
    if not good:
        why = of_size[0]["failed"] if of_size else "there was no time for it"
        return [Cell(head, text) for head, text in zip(HEADS, (f"M={size}", "0", *[""] * 6, why))]
    time_us = statistics.median(each["time_us"] for each in good)
    target = target_for(time_us) if with_targets else None
    scatter = Scatter.of([each["ratio"] for each in good])
    intervals = [Interval(each["ratio"], each["lo"], each["hi"]) for each in good]
    half = statistics.median((each["hi"] - each["lo"]) / 2 for each in good)
    seconds = _seconds(good)
    return [
        Cell(HEADS[0], f"M={size}, {terminal.time_text(time_us)}"),
        Cell(HEADS[1], f"{len(good)} of {len(of_size)}"),
        _beside(HEADS[2], _percent(scatter.p95), target and _percent(target.p95), target and scatter.p95 > target.p95),
        _spread(good, target), _wrong(good, target),
        _held(HEADS[5], held(intervals, long_run([each["ratio"] for each in good])), len(good), target),
        _held(HEADS[6], held(intervals), len(good), target),
        Cell(HEADS[7], f"±{_percent(half)}"),
        _beside(HEADS[8], f"{seconds:.1f}", target and f"{target.seconds:g}", target and seconds > target.seconds),
    ]


def beside_table(figures: Figures, with_targets: bool) -> str:
    """The table of the candidates that were timed beside the controls; nothing where there were none."""
    pairs = dict.fromkeys((each["size"], each["name"]) for each in figures if not is_control(each))
    rows = [[str(cell) for cell in beside_row(figures, *pair, with_targets)] for pair in pairs]
    return tabulate(rows, BESIDE_HEADS, tablefmt="github", disable_numparse=True) if rows else ""


def beside_row(figures: Figures, size: int, name: str, with_targets: bool) -> list[Cell]:
    """The cells of one candidate at one size, in the order of `BESIDE_HEADS`."""
    of_pair = [each for each in figures if (each["size"], each["name"]) == (size, name)]
    good = [each for each in of_pair if "ratio" in each]
    if not good:
        return [Cell(head, text) for head, text in zip(BESIDE_HEADS, (f"{name}, M={size}", "0", *[""] * 6, of_pair[0]["failed"]))]
    ratios = [each["ratio"] for each in good]
    truth = long_run(ratios)
    scatter = Scatter.of(ratios, truth)
    time_us = statistics.median(each["time_us"] for each in good)
    half = statistics.median((each["hi"] - each["lo"]) / 2 / each["ratio"] for each in good)
    words = Counter(each["call"] for each in good)
    target = target_for(time_us) if with_targets else None
    intervals = [Interval(each["ratio"], each["lo"], each["hi"]) for each in good]
    processes = len({(each["run"], each["process"]) for each in good})
    return [
        Cell(BESIDE_HEADS[0], f"{name}, M={size}, {terminal.time_text(time_us)}"),
        Cell(BESIDE_HEADS[1], f"{len(good)} of {len(of_pair)}, {processes} processes"),
        Cell(BESIDE_HEADS[2], f"{truth:.4g}"),
        Cell(BESIDE_HEADS[3], _percent(scatter.p95)), Cell(BESIDE_HEADS[4], _percent(scatter.spread)),
        Cell(BESIDE_HEADS[5], ", ".join(f"{count} {word}" for word, count in words.most_common())),
        _held(BESIDE_HEADS[6], held(intervals, truth), len(good), target),
        Cell(BESIDE_HEADS[7], f"±{_percent(half)}"), Cell(BESIDE_HEADS[8], f"{_seconds(good):.1f}"),
    ]


def sentences(rows: Sequence[Sequence[Cell]]) -> list[str]:
    """A sentence for each pair that misses a target, or one for all of them."""
    aimed = [row for row in rows if any(cell.aim for cell in row)]
    missed = [
        f"{row[0].text} misses "
        + "; ".join(f"{cell.head}: {cell.text}, aimed at {cell.aim}" for cell in row if cell.missed) + "."
        for row in aimed if any(cell.missed for cell in row)
    ]
    return missed or (["Every target is met."] if aimed else [])


def _seconds(good: Figures) -> float:
    """From row to row; the first of a process has its start before it."""
    later = [each["seconds"] for each in good if not each["first"]]
    return statistics.median(later or [each["seconds"] for each in good])


def _percent(share: float) -> str:
    return f"{100 * share:.3f} %"


def _beside(head: str, figure: str, aim: str | None, missed: bool | None) -> Cell:
    return Cell(head, figure, aim, bool(missed))


def _spread(good: Figures, target: Target | None) -> Cell:
    """Of the processes of each run; those of several runs, which would be more at once, are not compared."""
    ratios: dict[int, dict[int, list[float]]] = {}
    for each in good:
        ratios.setdefault(each["run"], {}).setdefault(each["process"], []).append(each["ratio"])
    among = [spread for of_run in ratios.values() for spread in spreads(list(of_run.values()))]
    if not among:
        return Cell(HEADS[3], "")
    typical = statistics.median(among)
    counts = " and ".join(str(len(of_run)) for of_run in ratios.values())
    said = f"{_percent(typical)}, at most {_percent(max(among))}, {counts} processes"
    return _beside(HEADS[3], said, target and _percent(target.spread), target and typical > target.spread)


def _wrong(good: Figures, target: Target | None) -> Cell:
    """Against its target as a rate; too few tries for it say what they leave possible."""
    wrong, n = sum(each["call"] in ("FASTER", "SLOWER") for each in good), len(good)
    said = f"{wrong} of {n}, so at most {100 * seen_at_most(wrong, n):.1f} %"
    missed = target and wrong > target.wrong_of_200 * n / 200
    return _beside(HEADS[4], said, target and f"{target.wrong_of_200} of 200", missed)


def _held(head: str, found: int, n: int, target: Target | None) -> Cell:
    return _beside(head, f"{found} of {n}", target and f"{100 * target.held:g} %", target and found < target.held * n)


def long_run(ratios: Sequence[float]) -> float:
    """Where the same measurement made often enough ends up: the geometric mean. Raises ValueError as `Scatter.of`."""
    if not ratios or min(ratios) <= 0:
        raise ValueError("a long-run ratio needs ratios, and a ratio is positive")
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def spreads(by_process: Sequence[Sequence[float]]) -> list[float]:
    """Largest over smallest less 1 of the first ratio of each process, of the second of each, and so on.

    Only places that every process came to are compared; there are none with fewer than two processes.
    """
    whole = list(zip(*by_process)) if len(by_process) > 1 else []
    return [max(ratios) / min(ratios) - 1 for ratios in whole]
