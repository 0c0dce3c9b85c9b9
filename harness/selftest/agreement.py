"""How far the three clocks of a selftest's calls lie apart: events, the profiler, and the judge's own.

The waits are what has all three; eager against itself is what the other rows' harness steps are measured by, and is
traced by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model.device_limits import limits_of
from harness.model.verdict import Status
from harness.report import terminal
from harness.results.record import Record
from harness.results.samples import read_samples
from harness.timing.three_clocks import ThreeClocks


@dataclass(frozen=True)
class Seen:
    """One row's call by its clocks."""

    record: Record
    clocks: ThreeClocks

    @property
    def title(self) -> str:
        return f"{self.record.candidate} ({self.record.problem}, {self.record.sizes})"


def read(records: Sequence[Record], csv_path: Path) -> list[Seen]:
    """The clocks of those of `records` that are ok, from the raw samples beside `csv_path`; not those of one clock."""
    pairs = (
        (record, ThreeClocks.in_samples(read_samples(csv_path, record)))
        for record in records if record.status is Status.OK
    )
    return [
        Seen(record, clocks) for record, clocks in pairs
        if clocks is not None and (clocks.traced_us, clocks.wall_us) != (None, None)
    ]


def sentences(seen: Sequence[Seen]) -> list[str]:
    """How far the other clocks are from the events at most, and where that is further than chance takes them."""
    parts = [
        part for part in (
            _furthest(seen, "the profiler's", lambda clocks: clocks.traced_us),
            _furthest(seen, "the judge's own", lambda clocks: clocks.wall_us),
        ) if part
    ]
    if not parts:
        return ["No call was seen by a second clock."]
    apart = [
        f"{each.title}: {disagreement}" for each in seen
        if (disagreement := each.clocks.disagreement(limits_of(each.record.device_kind or "cpu")))
    ]
    return [f"Other clocks beside the events: {', '.join(parts)}.", *apart]


def _furthest(seen: Sequence[Seen], whose: str, time_us: Callable[[ThreeClocks], float | None]) -> str | None:
    """`whose` clock, and how far it is at most."""
    read = [(each.clocks.events_us, other_us) for each in seen if (other_us := time_us(each.clocks)) is not None]
    if not read:
        return None
    events_us, other_us = max(read, key=lambda pair: abs(pair[1] / pair[0] - 1))
    share = terminal.number_text(100 * abs(other_us / events_us - 1), 2)
    calls = f"{len(read)} call{'s' if len(read) > 1 else ''}"
    return f"{whose} at most {share} % ({terminal.time_text(abs(other_us - events_us))}) off in {calls}"
