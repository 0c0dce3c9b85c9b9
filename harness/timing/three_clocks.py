"""What three clocks say of one call: the worker's events, what traced it, and the judge's own clock.

Plain values for the raw samples of a run and back, and the arithmetic of how far they are apart. None of them is taken
for the others: the ranking time is that of the events, and the other two are there to contradict it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.model.device_limits import DeviceLimits

@dataclass(frozen=True)
class ThreeClocks:
    """One call in µs. `events_us` is the ranking time; `traced_us` how long one traced call kept the device busy;
    `wall_us` what the judge's clock saw of a timed call, less the harness's own steps as beside the control. The last
    two are None where there was no such reading.
    """

    events_us: float
    traced_us: float | None = None
    wall_us: float | None = None

    def disagreement(self, limits: DeviceLimits) -> str | None:
        """A sentence where another clock is further from the events than chance takes it, else None."""
        others = (
            ("the profiler", self.traced_us, limits.traced_apart_us),
            ("the judge's clock", self.wall_us, limits.wall_apart_us),
        )
        readings = [
            f"{who} says {time_us:.1f} µs" for who, time_us, least_us in others
            if time_us is not None and abs(time_us - self.events_us) > max(limits.apart_share * self.events_us, least_us)
        ]
        if not readings:
            return None
        return f"the clocks disagree: a call takes {self.events_us:.1f} µs {limits.whose_clock}, and " \
            f"{' and '.join(readings)}"

    def to_json(self) -> dict[str, float | None]:
        return {"events_us": self.events_us, "profiler_us": self.traced_us, "wall_us": self.wall_us}  # the raw samples' keys

    @classmethod
    def in_samples(cls, samples: Mapping[str, Any]) -> ThreeClocks | None:
        """Those of a record's raw samples; None where it has none that can be read."""
        body = samples.get("clocks")
        try:
            events_us, *others = (body[name] for name in ("events_us", "profiler_us", "wall_us"))
            return cls(float(events_us), *(None if each is None else float(each) for each in others))
        except (KeyError, TypeError, ValueError):
            return None
