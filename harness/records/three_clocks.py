"""What three clocks say of one call: the player's events, the profiler, and the referee's own clock.

Plain values for the raw samples of a run and back, and the arithmetic of how far they are apart. None of them is taken
for the others: the ranking time is that of the events, and the other two are there to contradict it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

# On an H200 the profiler's time of 31 candidates from 160 µs to 72 ms lay within 2.9 % of the events', the referee's
# within 27 µs, and 44 for one of 46 ms; a busy CPU takes milliseconds from either.
APART_SHARE = {"cuda": 0.1, "cpu": 0.5}
PROFILER_LEAST_US, WALL_LEAST_US = {"cuda": 20.0, "cpu": 5000.0}, {"cuda": 50.0, "cpu": 5000.0}


@dataclass(frozen=True)
class ThreeClocks:
    """One call in µs. `events_us` is the ranking time; `profiler_us` how long one traced call kept the device busy;
    `wall_us` what the referee's clock saw of a timed call, less the harness's own steps as beside the control. The last
    two are None where there was no such reading.
    """

    events_us: float
    profiler_us: float | None = None
    wall_us: float | None = None

    def disagreement(self, device_kind: str) -> str | None:
        """A sentence where another clock is further from the events than chance takes it, else None."""
        others = (
            ("the profiler", self.profiler_us, PROFILER_LEAST_US), ("the referee's clock", self.wall_us, WALL_LEAST_US),
        )
        said = [
            f"{who} says {time_us:.1f} µs" for who, time_us, least_us in others
            if time_us is not None
            and abs(time_us - self.events_us) > max(APART_SHARE[device_kind] * self.events_us, least_us[device_kind])
        ]
        if not said:
            return None
        whose = clock_of(device_kind)
        return f"the clocks disagree: a call takes {self.events_us:.1f} µs {whose}, and {' and '.join(said)}"

    def to_json(self) -> dict[str, float | None]:
        return asdict(self)

    @classmethod
    def in_samples(cls, samples: Mapping[str, Any]) -> ThreeClocks | None:
        """Those of a record's raw samples; None where it has none that can be read."""
        body = samples.get("clocks")
        try:
            events_us, *others = (body[name] for name in ("events_us", "profiler_us", "wall_us"))
            return cls(float(events_us), *(None if each is None else float(each) for each in others))
        except (KeyError, TypeError, ValueError):
            return None


def clock_of(device_kind: str | None) -> str:
    """Whose clock ranks: events of the GPU's, and on a CPU the player's own."""
    return "by the player's clock" if device_kind == "cpu" else "by events"
