"""What a device is, for the record: names, sizes, versions. What cannot be read stays None."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceIdentity:
    """Sizes in bytes, power in W; `sm` is the compute capability as "9.0"."""

    kind: str
    name: str
    uuid: str | None = None
    sm: str | None = None
    sm_count: int | None = None
    l2_bytes: int | None = None
    memory_bytes: int | None = None
    driver: str | None = None
    cuda: str | None = None
    torch: str | None = None
    power_limit_w: float | None = None

    @property
    def team(self) -> tuple[str | None, ...]:
        """What the devices of a team have in common: their model, and what builds and eager hang on."""
        return self.kind, self.name, self.torch, self.cuda


@dataclass(frozen=True)
class Telemetry:
    """One look at the device. `throttle` names the reasons in force, "" for none, None for unknown."""

    sm_mhz: int | None = None
    mem_mhz: int | None = None
    watts: float | None = None
    celsius: float | None = None
    throttle: str | None = None
    other_processes: int | None = None


@dataclass(frozen=True)
class Violations:
    """For how long limits have held the clocks down since the driver was loaded, in ns; None for unknown."""

    power_ns: int | None = None
    thermal_ns: int | None = None

    def since(self, before: Violations) -> Violations:
        """What came to it after `before`."""
        return Violations(_less(self.power_ns, before.power_ns), _less(self.thermal_ns, before.thermal_ns))


def _less(now_ns: int | None, before_ns: int | None) -> int | None:
    return None if now_ns is None or before_ns is None else now_ns - before_ns


def cpu_name() -> str:
    """The processor's model name as Linux gives it, else the platform's word for it."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
