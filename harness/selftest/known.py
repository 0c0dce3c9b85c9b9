"""A kernel that takes a known time, against itself, twice itself and three times itself.

What it shows is whether times add up: each further wait must cost the same, and as much as the waiting was asked to
take. The waiting is counted in clock cycles on a GPU, in nanoseconds on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.candidate import find_candidates
from harness.pipeline import RunRequest
from harness.pipeline import run as judge_all
from harness.problem import REPOSITORY, load_problem
from harness.records.schema import Record
from harness.report import terminal
from harness.report.progress import Progress
from harness.settings import load_settings
from harness.verdict import Status

PROBLEM = REPOSITORY / "tests" / "known" / "spin.yaml"
SPINS = {"cuda": (30_000, 4_000_000), "cpu": (2_000_000,)}
# Kernels cost something to start, so what a short wait takes beside its cycles says nothing about the clock.
_LONG_US = 500.0
# How far the waits may be from adding up, and a long one from what it was asked to take. On a busy machine more.
BENT, APART = 0.02, 0.05


@dataclass(frozen=True)
class Waits:
    """The records of one wait of `spin` cycles (GPU) or ns (CPU): once, twice and three times in a call."""

    spin: int
    records: Sequence[Record]

    def time_us(self, name: str) -> float | None:
        found = (each.time_us for each in self.records if each.candidate == name and each.status is Status.OK)
        return next(found, None)

    @property
    def step_us(self) -> float | None:
        """What a further wait costs."""
        once, thrice = self.time_us("itself"), self.time_us("thrice")
        return None if once is None or thrice is None else (thrice - once) / 2

    @property
    def asked_us(self) -> float | None:
        """What it was asked to take, at the SM clock that was read meanwhile; None where none could be read."""
        first = self.records[0] if self.records else None
        if first is None or first.device_kind == "cpu":
            return self.spin / 1e3
        clocks = [each.sm_mhz for each in self.records if each.sm_mhz]
        return self.spin / (sum(clocks) / len(clocks)) if clocks else None

    @property
    def bent(self) -> float | None:
        """How far two waits are from the middle between one and three, relative."""
        once, twice, thrice = map(self.time_us, ("itself", "twice", "thrice"))
        return None if None in (once, twice, thrice) else twice / ((once + thrice) / 2) - 1

    @property
    def apart(self) -> float | None:
        """How far a further wait is from what it was asked to take, relative; None for a short one."""
        if self.step_us is None or self.asked_us is None or self.asked_us < _LONG_US:
            return None
        return self.step_us / self.asked_us - 1

    @property
    def adds_up(self) -> bool:
        return self.bent is not None and abs(self.bent) <= BENT and abs(self.apart or 0.0) <= APART


def run_waits(kind: str, device: str, folder: Path, progress: Progress) -> tuple[list[Waits], list[Path]]:
    """The waits that are for a device of `kind`, under ``--config quick``, and the files of their records."""
    problem, settings, waits, paths = load_problem(PROBLEM, PROBLEM.with_suffix("")), load_settings("quick"), [], []
    candidates = find_candidates(problem.candidates_dir)
    for spin in SPINS[kind]:
        progress.note(f"waiting once, twice and three times for {spin} {'ns' if kind == 'cpu' else 'cycles'}")
        sizes = {"SPIN": spin}
        chosen = replace(problem, sizes=sizes, cpu_sizes=sizes)
        result = judge_all(RunRequest(chosen, candidates, device, settings, folder), progress)
        waits.append(Waits(spin, result.records))
        paths.append(result.csv_path)
    return waits, paths


def sentence(waits: Waits) -> str:
    """What came of one wait, in a line."""
    title = f"waiting once, twice and three times for {waits.spin} " \
            f"{'ns' if waits.records and waits.records[0].device_kind == 'cpu' else 'cycles'}"
    if waits.step_us is None or waits.bent is None:
        failed = [each for each in waits.records if each.status is not Status.OK][:1]
        why = [f": {each.candidate} was {each.status.value}: {terminal.one_line(each.reason or '')}" for each in failed]
        return f"{title} could not be timed{''.join(why)}"
    parts = [f"{title}: {terminal.time_text(waits.step_us)} each"]
    if waits.apart is not None:
        parts.append(f"{_percent(waits.apart)} from the {terminal.time_text(waits.asked_us)} that were asked for")
    parts.append(f"two are {_percent(waits.bent)} from the middle of one and three")
    return ", ".join(parts)


def _percent(share: float) -> str:
    return f"{'−' if share < 0 else '+'}{terminal.number_text(abs(100 * share), 2)} %"
