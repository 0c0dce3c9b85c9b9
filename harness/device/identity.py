"""What a device is, for the record: names, sizes, versions. What cannot be read stays None."""

from __future__ import annotations

import platform
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


@dataclass(frozen=True)
class Telemetry:
    """One look at the device. `throttle` names the reasons in force, "" for none, None for unknown."""

    sm_mhz: int | None = None
    mem_mhz: int | None = None
    watts: float | None = None
    celsius: float | None = None
    throttle: str | None = None
    other_processes: int | None = None


def cpu_name() -> str:
    """The processor's model name as Linux gives it, else the platform's word for it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
