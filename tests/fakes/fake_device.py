"""The third twin of `harness.device.cuda` and `cpu`: a backend whose memory is this process's and whose clock stands still
until a script moves it.

It stands behind the same seam, `Backend`, and takes the limits of either kind. What is launched on it is a
`fake_worker.FakeWorker`'s.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from harness.attribution.loaded_code import LoadedCode
from harness.attribution.recording import Call, Ran, Recording
from harness.device.backend import CacheFlushed, LaunchReached, LocalTimes
from harness.device.energy import PowerMeter
from harness.device.identity import DeviceIdentity, Telemetry, Violations
from harness.device.output_snapshots import OutputSnapshots
from harness.model.device_limits import limits_of
from harness.protocol.arena import Arena
from harness.protocol.markers import PLAIN
from harness.protocol.recorder import KERNEL
from harness.reference.inputs.late_inputs import LateInputs
from harness.reference.inputs.sets import InputSet

_BEGIN_NS = 10**12


class FakeClock:
    """The time of a test: it passes where somebody waits for it or a script says that something took so long."""

    def __init__(self) -> None:
        self._now_ns = _BEGIN_NS
        self._thread, self._true_sleep = threading.get_ident(), time.sleep

    def pass_us(self, time_us: float) -> None:
        self._now_ns += round(1e3 * time_us)

    def sleep(self, seconds: float) -> None:
        """A thread that an earlier test left behind makes nothing older here; nor does the standard library, which waits
        for a true process: of a fake sleep `subprocess` takes thousands before that has ended.
        """
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if threading.get_ident() != self._thread or caller.partition(".")[0] in sys.stdlib_module_names:
            self._true_sleep(seconds)
            return
        self._now_ns += round(1e9 * seconds)

    def monotonic(self) -> float:
        return self._now_ns / 1e9

    def perf_counter_ns(self) -> int:
        return self._now_ns

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have the standard library's `time` be this clock's."""
        monkeypatch.setattr(time, "sleep", self.sleep)
        for name in ("monotonic", "perf_counter"):
            monkeypatch.setattr(time, name, self.monotonic)
        for name in ("monotonic_ns", "perf_counter_ns"):
            monkeypatch.setattr(time, name, self.perf_counter_ns)


class FakeBackend:
    """A device of `kind`. `eager_us` is what a call of the judge's own takes; `canaries_gbps` are the copy bandwidths that
    will be measured, of which the last stays; `sick` is what is wrong with it.

    `log` has what was made on it and asked of it, in order.
    """

    transport, l2_policy, timer, markers = "none", "scripted", "scripted", PLAIN

    def __init__(self, clock: FakeClock, kind: str = "cuda", *, eager_us: float = 1000.0, memory_bytes: int = 8 << 30) -> None:
        self.kind, self.limits, self.clock = kind, limits_of(kind), clock
        self.torch_device = torch.device("cpu")
        self.identity = DeviceIdentity(
            kind, "Scripted", uuid="GPU-scripted" if kind == "cuda" else None, memory_bytes=memory_bytes
        )
        self.arena = Arena.create()
        self.eager_us, self.canaries_gbps, self.sick = eager_us, [4000.0], None
        self.has_room, self.peak, self.left = True, None, 0
        self.throttle: Callable[[], str | None] = lambda: None
        self.log: list[str] = []
        self.worker: Any = None  # whose launches are made
        self.slots: list[torch.Tensor] = []
        self.outboxes: list[torch.Tensor] = []
        self.released = self.window = -1
        self._sets: Sequence[InputSet] = ()
        self._late_inputs: LateInputs | None = None
        self._taken: list[torch.Tensor] = []
        self._snapshots = OutputSnapshots(self.torch_device)
        self._recorded: list[Ran] | None = None  # while kernels are recorded
        self._memory_bytes = self._limit_bytes = memory_bytes

    def prepare_command(self) -> dict[str, Any]:
        self.released = self.window = -1
        return {"op": "prepare", "device": self.kind}

    def available_bytes(self) -> int:
        return min(self._memory_bytes, self._limit_bytes)

    def limit_memory(self, limit_bytes: int | None) -> None:
        self._limit_bytes = self._memory_bytes if limit_bytes is None else limit_bytes

    def open(self, count: int, input_bytes: int, output_bytes: int, *, tight: bool = False) -> dict[str, Any]:
        self.slots, self.outboxes = (
            [torch.zeros(size_bytes, dtype=torch.uint8) for _ in range(count)] for size_bytes in (input_bytes, output_bytes)
        )
        return {"op": "open", "regions": {}}

    def close_regions(self) -> dict[str, Any]:
        return {"op": "open", "regions": {}}

    def free_regions(self) -> None:
        self.slots, self.outboxes = [], []

    def forget_launches(self) -> None:
        self._taken = []

    def upload_inputs(self, sets: Sequence[InputSet], late_inputs: LateInputs | None = None) -> None:
        self._sets, self._late_inputs = sets, late_inputs
        self._snapshots.forget()

    def release(self, channel: Any, sequence: int, index: int) -> None:
        inputs = self._sets[index]
        region = self._late_inputs.lacking(inputs) if self._lacks_pieces(index) else inputs.region
        self.slots[index][: region.numel()].copy_(region)
        self.released = sequence

    def open_window(self, sequence: int, index: int) -> None:
        if self._lacks_pieces(index):
            self._late_inputs.complete(self.slots[index])
        self.window = sequence

    def _lacks_pieces(self, index: int) -> bool:
        return self._late_inputs is not None and self._late_inputs.index == index

    def flush_fault(self, index: int, *, inspect: bool) -> str | None:
        return self.worker.script.flush_fault if inspect or not self.limits.gates_queues else None

    def release_all(self, channel: Any, last: int) -> None:
        self.released = self.window = last

    def poll(self, channel: Any, timeout_s: float) -> LaunchReached | CacheFlushed | dict[str, Any] | None:
        self.worker = channel.worker
        event = self.worker.event()
        if event is None:
            self.clock.sleep(timeout_s)
        return event

    def begin_recording(self) -> None:
        self.log.append("kernels are recorded")
        self._recorded = []

    def end_recording(self) -> Recording:
        ran, self._recorded = self._recorded, None
        return Recording(ran, [Call(each.correlation) for each in ran if each.kind == KERNEL])

    def loaded_code(self) -> LoadedCode:
        return LoadedCode((), is_whole=True)

    def ran(self, name: str, took_us: float = 0.0, began_us: float = 0.0, kind: int = KERNEL, moved_bytes: int = 0) -> None:
        """Record a kernel, if that is asked for, which began so long ago; or a copy or fill of so many bytes."""
        if self._recorded is not None:
            began_ns = self.clock.perf_counter_ns() - round(1e3 * began_us)
            ended_ns = began_ns + round(1e3 * took_us)
            self._recorded.append(Ran(kind, len(self._recorded) + 1, began_ns, ended_ns, name, bytes=moved_bytes))

    def processes(self) -> set[int]:
        return set()

    def slots_unchanged(self, sets: Sequence[InputSet]) -> list[bool]:
        return [torch.equal(slot[: each.region.numel()], each.region) for slot, each in zip(self.slots, sets)]

    def snapshot(self, index: int) -> None:
        self._snapshots.take(index, self.outboxes[index])

    def written_late(self) -> list[int]:
        return self._snapshots.changed(self._taken)

    def take_outputs(self, count: int, *, on_host: bool = False) -> None:
        self._taken = [outbox.clone() for outbox in self.outboxes[:count]]

    def outbox(self, index: int) -> torch.Tensor:
        return self._taken[index]

    def local_launches(self, model: torch.nn.Module, sets: Sequence[InputSet], *, gate: bool) -> LocalTimes:
        beside = self.worker is not None and self.worker.is_alive
        time_us = self.worker.script.slows_eager * self.eager_us if beside else self.eager_us
        self.clock.pass_us(time_us * len(sets))
        self.log.append("eager is timed" if beside else "eager is timed alone")
        return LocalTimes([time_us] * len(sets), time_us + 10.0, hidden=True if gate else None)

    def synchronize(self) -> None:
        """Nothing is queued here."""

    def telemetry(self, own_pids: set[int]) -> Telemetry:
        return Telemetry(throttle=self.throttle())

    def violations(self) -> Violations:
        return Violations()

    def power_meter(self) -> PowerMeter:
        return PowerMeter(lambda: None)

    def copy_gbytes_s(self) -> float:
        self.log.append("the canary is measured")
        return self.canaries_gbps.pop(0) if len(self.canaries_gbps) > 1 else self.canaries_gbps[0]

    def multiply_add_tflops(self) -> float:
        return 50.0

    def event_floor_us(self) -> float:
        return 1.0

    def unhealthy(self) -> str | None:
        return self.sick

    def settle(self) -> None:
        """It is always idle."""

    def left_bytes(self, waiting: int = 0) -> int:
        return self.left

    def peak_bytes(self) -> int | None:
        peak, self.peak = self.peak, None
        return peak

    def note_waiting_worker(self) -> None:
        """Nobody holds any memory here."""

    def has_room_for_waiting(self) -> bool:
        return self.has_room

    def release_memory(self) -> None:
        """Nothing is cached here."""

    def visible_devices(self) -> dict[str, str]:
        return {}
