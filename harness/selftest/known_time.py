"""A kernel that takes a known time, against itself, twice itself and three times itself. What it shows is whether times
add up: each further wait must cost the same, and as much as the waiting was asked to take, in clock cycles on a GPU and
in nanoseconds on a CPU. And it shows how far the three clocks of a call lie apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.judge.run import Judging, RunRequest, run as judge_all
from harness.model.candidate import find_candidates
from harness.model.device_limits import limits_of
from harness.model.paths import SHIPPED
from harness.model.problem import load_problem
from harness.model.settings import Settings
from harness.model.verdict import Status
from harness.report import terminal
from harness.report.progress import Progress
from harness.results.record import Record
from harness.results.samples import read_samples
from harness.timing.three_clocks import ThreeClocks

PROBLEM = SHIPPED / "tests" / "known" / "spin.yaml"
SPINS = {"cuda": (30_000, 4_000_000), "cpu": (200_000, 2_000_000)}
# How far the waits may be from adding up, and one from what it was asked to take: a share, or so many µs. A kernel
# takes some to start, beside its cycles, and a CPU to come back from whatever else it did.
BENT, APART = 0.02, 0.05
_BENT_LEAST_US, _APART_LEAST_US = {"cuda": 0.0, "cpu": 20.0}, {"cuda": 5.0, "cpu": 20.0}


@dataclass(frozen=True)
class Waits:
    """The records of one wait of `spin` cycles (GPU) or ns (CPU): once, twice and three times in a call."""

    spin: int
    records: Sequence[Record]

    def time_us(self, name: str) -> float | None:
        return next((row.time_us for row in self.records if row.candidate == name and row.status is Status.OK), None)

    @property
    def step_us(self) -> float | None:
        """What a further wait costs."""
        once, thrice = self.time_us("itself"), self.time_us("thrice")
        return None if once is None or thrice is None else (thrice - once) / 2

    @property
    def kind(self) -> str:
        return (self.records[0].device_kind if self.records else None) or "cuda"

    @property
    def asked_us(self) -> float | None:
        """What it was asked to take, at the SM clock that was read meanwhile; None where none could be read."""
        if not self.records or self.kind == "cpu":
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
        """How far a further wait is from what it was asked to take, relative."""
        return None if self.step_us is None or self.asked_us is None else self.step_us / self.asked_us - 1

    @property
    def adds_up(self) -> bool:
        """Whether two are in the middle of one and three, and each takes what it was asked to, if that is known."""
        if self.bent is None:
            return False
        bent_us = abs(self.bent) * self.time_us("twice")
        apart_us = 0.0 if self.apart is None else abs(self.apart) * self.asked_us
        return bent_us <= max(BENT * self.time_us("twice"), _BENT_LEAST_US[self.kind]) and apart_us <= max(
            APART * (self.asked_us or 0.0), _APART_LEAST_US[self.kind]
        )


def run_waits(
    kind: str, device: str, folder: Path, progress: Progress, settings: Settings, wait_s: float | None = None,
    judge: Judging = judge_all,
) -> tuple[list[Waits], list[Path]]:
    """The waits for a device of `kind`, and the files of their records; all else is as for `control_row.run_control`."""
    problem, waits, paths = load_problem(PROBLEM, PROBLEM.with_suffix("")), [], []
    candidates = find_candidates(problem.candidate_folders)
    for spin in SPINS[kind]:
        progress.note(f"waiting once, twice and three times for {spin} {'ns' if kind == 'cpu' else 'cycles'}")
        chosen = replace(problem, sizes={"SPIN": spin}, cpu_sizes={"SPIN": spin})
        result = judge(RunRequest(chosen, candidates, device, settings, folder, wait_s=wait_s), progress)
        waits.append(Waits(spin, result.records))
        paths.append(result.csv_path)
    return waits, paths


def sentence(waits: Waits) -> str:
    """What came of one wait, in a line."""
    title = f"waiting once, twice and three times for {waits.spin} {'ns' if waits.kind == 'cpu' else 'cycles'}"
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


# How far the three clocks of a wait's calls lie apart: events, the profiler, and the judge's own. The waits have all
# three; eager against itself is what the other rows' harness steps are measured by, and is traced by nobody.


@dataclass(frozen=True)
class Seen:
    """One row's call by its clocks."""

    record: Record
    clocks: ThreeClocks


def clocks_of(records: Sequence[Record], csv_path: Path) -> list[Seen]:
    """The clocks of those of `records` that are ok, from the raw samples beside `csv_path`; not those of one clock."""
    rows = [record for record in records if record.status is Status.OK]
    pairs = [(record, ThreeClocks.in_samples(read_samples(csv_path, record))) for record in rows]
    seen = [Seen(record, clocks) for record, clocks in pairs if clocks is not None]
    return [each for each in seen if (each.clocks.traced_us, each.clocks.wall_us) != (None, None)]


def clock_sentences(seen: Sequence[Seen]) -> list[str]:
    """How far the other clocks are from the events at most, and where that is further than chance takes them."""
    parts = list(filter(None, (
        _furthest(seen, "the profiler's", lambda clocks: clocks.traced_us),
        _furthest(seen, "the judge's own", lambda clocks: clocks.wall_us),
    )))
    if not parts:
        return ["No call was seen by a second clock."]
    sentences = [f"Other clocks beside the events: {', '.join(parts)}."]
    for record, clocks in ((each.record, each.clocks) for each in seen):
        if disagreement := clocks.disagreement(limits_of(record.device_kind or "cpu")):
            sentences.append(f"{record.candidate} ({record.problem}, {record.sizes}): {disagreement}")
    return sentences


def _furthest(seen: Sequence[Seen], whose: str, time_us: Callable[[ThreeClocks], float | None]) -> str | None:
    """`whose` clock, and how far it is at most."""
    read = [(each.clocks.events_us, other_us) for each in seen if (other_us := time_us(each.clocks)) is not None]
    if not read:
        return None
    events_us, other_us = max(read, key=lambda pair: abs(pair[1] / pair[0] - 1))
    share = terminal.number_text(100 * abs(other_us / events_us - 1), 2)
    calls = f"{len(read)} call{'s' if len(read) > 1 else ''}"
    return f"{whose} at most {share} % ({terminal.time_text(abs(other_us - events_us))}) off in {calls}"
