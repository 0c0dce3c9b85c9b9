"""The control by itself: eager PyTorch in a worker against eager PyTorch in the judge. Whatever the ratio is off one by
is no property of a kernel: it is what this device, today, does to every number. A GPU has a small problem besides the
shipped ones, because it does more to small kernels than to large.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.judge.run import Judging, RunRequest, run as judge_all
from harness.model.files.text_files import files_in
from harness.model.files.yaml_lines import YAML_SUFFIXES
from harness.model.problem import PROBLEMS_DIR, Problem, load_problem
from harness.model.settings import Settings
from harness.model.sizes_text import sizes_text
from harness.model.verdict import Status
from harness.report import terminal
from harness.report.progress import Progress
from harness.results.record import Record
from harness.timing.stats import MARGINS, Interval, PooledBaseline, process_share, speedup_word
from harness.timing.stats.difference import Scatter, held, seen_at_most

TOO_FAR = 0.05  # half of what a kernel of interest gains would be this device's own doing
_CONFIDENCE = 0.99
# Tens of microseconds, and some ten: what bends the times of small kernels does not show in large ones.
SMALL = {"tril_matmul": ({"M": 768}, {"M": 256})}


def new_folder() -> Path:
    """A new temporary folder for the records of a selftest; it stays."""
    return Path(tempfile.mkdtemp(prefix="kernel-referee-selftest-"))


def run_control(
    kind: str, device: str, folder: Path, progress: Progress, settings: Settings, repeats: int = 1,
    wait_s: float | None = None, judge: Judging = judge_all,
) -> tuple[list[Record], list[Path]]:
    """The record of "eager" for each problem of a `kind` of device, `repeats` times, and the files they are in. The
    device is waited for at most `wait_s`, as `device.lock` does. `judge` has it judged, on this machine if not said.
    Raises HarnessError for what is the machine's fault.
    """
    records, paths = [], []
    for repeat in range(repeats):
        for problem in _problems(kind):
            sizes = sizes_text(problem.timed_sizes(kind))
            nth = f", {repeat + 1} of {repeats}" if repeats > 1 else ""
            progress.note(f"{problem.name} ({sizes}): eager against itself{nth}")
            result = judge(RunRequest(problem, [], device, settings, folder, wait_s=wait_s), progress)
            records += result.records
            paths.append(result.csv_path)
    return records, paths


def _problems(kind: str) -> list[Problem]:
    shipped = [
        replace(load_problem(path), baselines=("eager",)) for path in files_in(PROBLEMS_DIR, YAML_SUFFIXES)
    ]
    small = [(problem, sizes) for problem in shipped for sizes in SMALL.get(problem.name, ()) if kind != "cpu"]
    return shipped + [replace(problem, sizes=sizes, check_sizes=()) for problem, sizes in small]


def off_by(record: Record) -> float | None:
    """How far from one the far end of the control's interval lies, relative; None when it was not measured."""
    if record.status is not Status.OK or record.speedup_lo is None or record.speedup_hi is None:
        return None
    return max(abs(1 - record.speedup_lo), abs(record.speedup_hi - 1))


def can_be_trusted(records: Sequence[Record], eager_players: int = 1) -> bool:
    """Whether every control was measured and none is further off than `TOO_FAR`, beside what its interval has for other
    processes; `eager_players` are those that eager is timed in.
    """
    def holds(record: Record) -> bool:
        off, is_eager = off_by(record), record.role == "baseline"
        return off is not None and off <= TOO_FAR + (0.0 if is_eager else _of_processes(record, eager_players))

    return bool(records) and all(map(holds, records))


def _of_processes(record: Record, eager_players: int) -> float:
    """How far a kernel that takes as long is from eager by the processes that each has been in."""
    if record.on_cpu or not record.time_us:
        return 0.0
    over = PooledBaseline(0.0, 1 + eager_players, 0.0)
    return math.expm1(process_share(record.time_us, record.time_us, _CONFIDENCE, over, kernels=1))


def sentences(records: Sequence[Record], eager_players: int = 1) -> list[str]:
    """A line for each thing timed against itself, what they come to, and how far this device can be trusted."""
    lines = [_line(record) for record in records]
    if not records or any(off_by(record) is None for record in records):
        return [*lines, "Eager could not be measured against itself, so no number of this device can be trusted now."]
    lines.append(_together(records))
    if can_be_trusted(records, eager_players):
        return [*lines, _trust(records, eager_players)]
    worst = terminal.number_text(100 * max(map(off_by, records)), 2)
    return [*lines, f"Eager may be off itself by {worst} % here, which is too far to rank kernels by. End what else "
                    "uses this device and run it again."]


def _together(measured: Sequence[Record]) -> str:
    """The scatter in each class of durations; wrong words and coverage of all, with how little so few can say."""
    intervals = [Interval(record.speedup, record.speedup_lo, record.speedup_hi) for record in measured]
    # The control itself has no such word, a candidate with its interval would.
    words = [speedup_word(interval, record.time_us) for interval, record in zip(intervals, measured)]
    wrong = sum(word in ("FASTER", "SLOWER") for word in words)
    unseen = terminal.number_text(100 * seen_at_most(wrong, len(measured)), 2)
    scattered = ", ".join(f"{_scatter_text(inside)} for {text} ({len(inside)})" for text, inside in _classes(measured))
    return (
        f"{len(measured)} times the same against itself: at most {scattered}; called FASTER or SLOWER {wrong} times (so few "
        f"tries cannot tell that from {unseen} %), and {held(intervals)} of {len(measured)} intervals hold 1."
    )


def _scatter_text(inside: Sequence[Record]) -> str:
    """How far the ratios are from 1, and where there are several the largest from the smallest."""
    scatter = Scatter.of([record.speedup for record in inside])
    off, apart = (terminal.number_text(100 * each, 2) for each in (scatter.worst, scatter.spread))
    return f"{off} % off and {apart} % apart" if scatter.n > 1 else f"{off} % off"


def _trust(measured: Sequence[Record], eager_players: int) -> str:
    """From which difference on a speedup is real, for each class of durations that was looked at: other code than eager
    differs from it from process to process, which eager beside itself does not show.
    """
    parts = []
    for text, inside in _classes(measured):
        percent = terminal.number_text(100 * max(max(off_by(each), _of_processes(each, eager_players)) for each in inside), 2)
        parts.append(f"{percent} % for {text}")
    of_one = "" if measured[0].on_cpu else " for a candidate of one kernel"
    return f"On this device differences above {' and '.join(parts)} are real{of_one}; what differs by less may be the same."


def _classes(measured: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """The classes of durations with a margin of their own, in words, and their records if any; the longest first."""
    classes, upper_us = [], math.inf
    for shortest_us, _ in MARGINS:
        inside = [each for each in measured if shortest_us <= (each.time_us or 0.0) < upper_us]
        if inside:
            classes.append((_class_text(shortest_us, upper_us), inside))
        upper_us = shortest_us
    return classes


def _class_text(shortest_us: float, upper_us: float) -> str:
    if upper_us == math.inf:
        return f"calls from {terminal.time_text(shortest_us)} on"
    if not shortest_us:
        return f"calls below {terminal.time_text(upper_us)}"
    return f"calls from {terminal.time_text(shortest_us)} to {terminal.time_text(upper_us)}"


def _line(record: Record) -> str:
    what = "eager" if record.role == "baseline" else record.candidate
    title = f"{record.problem} ({record.sizes}): {what} over {'itself' if what == 'eager' else 'eager'}"
    if off_by(record) is None:
        return f"{title}: {record.status.value}: {terminal.one_line(record.reason or '')}"
    ratio = terminal.speedup_text(record)
    return f"{title} {ratio} {record.call}, {terminal.time_text(record.time_us or 0.0)}"
