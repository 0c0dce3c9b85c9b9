"""Clocks, power, temperature, throttle reasons and processes of a GPU, from NVML where it can be had."""

from __future__ import annotations

import os
from typing import Any

from harness.device.identity import Telemetry, Violations

# NVML's clocksEventReasons bits; the first group is how a loaded GPU behaves, the second is the machine's trouble.
_STEADY = {0x4: "power_cap", 0x2: "applications_clocks", 0x10: "sync_boost", 0x100: "display"}
THERMAL = {0x8: "hw_slowdown", 0x20: "sw_thermal", 0x40: "hw_thermal", 0x80: "hw_power_brake"}


class Nvml:
    """A handle on one GPU by UUID; every reading is None where NVML is absent or refuses."""

    def __init__(self, uuid: str) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
        except Exception:
            self._nvml = None

    @property
    def present(self) -> bool:
        return self._nvml is not None

    def driver(self) -> str | None:
        return self._read(lambda nvml, _: nvml.nvmlSystemGetDriverVersion())

    def power_limit_w(self) -> float | None:
        return self._read(lambda nvml, handle: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3)

    def telemetry(self, own_pids: set[int]) -> Telemetry:
        """One reading; `own_pids` are not counted among other processes."""
        return Telemetry(
            sm_mhz=self._read(lambda n, h: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM)),
            mem_mhz=self._read(lambda n, h: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM)),
            watts=self._read(lambda n, h: n.nvmlDeviceGetPowerUsage(h) / 1e3),
            celsius=self._read(lambda n, h: float(n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU))),
            throttle=self.throttle(),
            other_processes=None if (pids := self.processes()) is None else len(pids - own_pids - {os.getpid()}),
        )

    def violations(self) -> Violations:
        """NVML counts them per policy; a GPU that was never held down says 0."""
        return Violations(*(
            self._read(lambda n, h: int(n.nvmlDeviceGetViolationStatus(h, getattr(n, policy)).violationTime))
            for policy in ("NVML_PERF_POLICY_POWER", "NVML_PERF_POLICY_THERMAL")
        ))

    def energy_mj(self) -> int | None:
        """Energy since the driver was loaded, in mJ."""
        return self._read(lambda nvml, handle: nvml.nvmlDeviceGetTotalEnergyConsumption(handle))

    def throttle(self) -> str | None:
        mask = self._read(lambda n, h: n.nvmlDeviceGetCurrentClocksThrottleReasons(h))
        if mask is None:
            return None
        return "+".join(name for bit, name in {**_STEADY, **THERMAL}.items() if mask & bit)

    def processes(self) -> set[int] | None:
        """The processes that compute on the GPU, this one among them; None where they are not known."""
        processes = self._read(lambda n, h: n.nvmlDeviceGetComputeRunningProcesses(h))
        pids = {process.pid for process in processes or ()}
        # A namespace may hide or renumber pids; a list without ourselves is not one to count from.
        return pids if os.getpid() in pids else None

    def _read(self, ask: Any) -> Any:
        if self._nvml is None:
            return None
        try:
            return ask(self._nvml, self._handle)
        except Exception:
            return None


def is_thermal(throttle: str | None) -> bool:
    """Whether the reasons include the machine's own trouble rather than a steady power cap."""
    return bool(throttle) and any(name in THERMAL.values() for name in throttle.split("+"))
