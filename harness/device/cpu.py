"""A backend on the CPU: shared host memory that the judge fills at each launch's turn, and the monotonic clock."""

from __future__ import annotations

import ctypes
import os
import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch

from harness.attribution.loaded_code import LoadedCode
from harness.attribution.recording import Recording
from harness.device import reference_rates
from harness.device.backend import CacheFlushed, LaunchReached, LocalTimes
from harness.device.energy import PowerMeter
from harness.device.identity import DeviceIdentity, Telemetry, Violations, cpu_name
from harness.device.output_snapshots import OutputSnapshots
from harness.model.device_limits import CPU
from harness.protocol import cpu_cache_flush, passes
from harness.protocol.arena import Arena
from harness.protocol.clocks.heap import SteadyHeap
from harness.protocol.clocks.stopwatch import MonotonicClock
from harness.protocol.frames import Channel, FrameTimeout, whole_number
from harness.reference.host_memory import available_host_bytes
from harness.reference.inputs.late_inputs import LateInputs
from harness.reference.inputs.sets import InputSet

_COPY_BYTES = 256 << 20
# OpenMP's idle workers spin for a while after a parallel region and would take a core from the other process.
_SPIN_ENDS_S = 0.005
# Between the look whether the cache is cold and the window: nothing but the waiting for it runs then, here or in the
# worker. Without it eager of 0.4 ms was 4 % slower in a worker than here (each time the mean of six runs or more on two
# cores).
_WINDOW_S = 0.0005
# A worker has waited for that look too, and looks so often whether its window is open.
_WAIT_S, _POLL_S = 2 * _WINDOW_S, 5e-5
_Region = tuple[dict[str, int], torch.Tensor]  # where it lies in the arena, and its bytes


class CpuBackend:
    """The judge's half of the launches on the CPU, with as many threads in the worker as here."""

    kind = "cpu"
    limits = CPU
    transport = "shared_memory"
    timer = MonotonicClock.name

    def __init__(self) -> None:
        self.torch_device = torch.device("cpu")
        self.l2_policy = cpu_cache_flush.POLICY
        if cpu_cache_flush.can_flush_lines():
            self.l2_policy += f", {cpu_cache_flush.EVICTED_POLICY}"
        self._heap = SteadyHeap()
        self.arena = Arena.create()
        self._flags = self.arena.flags()
        self._cache_bytes = cpu_cache_flush.cpu_last_level_bytes()
        self._flush_buffer = self.arena.named("flush_buffer", cpu_cache_flush.cpu_flush_buffer_bytes(self._cache_bytes))
        self._cache_flush = cpu_cache_flush.CpuCacheFlush(self.arena.map(**self._flush_buffer))
        self._word = 0
        self._stopwatch = MonotonicClock()
        self._slots: list[_Region] = []
        self._outboxes: list[_Region] = []
        self._sets: Sequence[InputSet] = ()
        self._late_inputs: LateInputs | None = None
        self._taken: list[torch.Tensor] = []
        self._output_bytes = 0
        self._limit_bytes: int | None = None
        self._snapshots = OutputSnapshots(self.torch_device)
        self.identity = DeviceIdentity(
            kind="cpu", name=cpu_name(), sm_count=os.cpu_count(), l2_bytes=self._cache_bytes,
            memory_bytes=_machine_bytes(), torch=torch.__version__,
        )

    def prepare_command(self) -> dict[str, Any]:
        self._flags.reset()
        self.arena.reclaim()
        threads = torch.get_num_threads()
        return {"op": "prepare", "device": "cpu", "threads": threads, "flush_buffer": self._flush_buffer}

    def available_bytes(self) -> int:
        there_bytes = available_host_bytes()
        return there_bytes if self._limit_bytes is None else min(there_bytes, self._limit_bytes)

    def limit_memory(self, limit_bytes: int | None) -> None:
        self._limit_bytes = limit_bytes

    def close_regions(self) -> dict[str, Any]:
        return {"op": "open", "regions": {"slots": [], "outboxes": []}}

    def forget_launches(self) -> None:
        self._taken = []

    def open(self, count: int, input_bytes: int, output_bytes: int, *, tight: bool = False) -> dict[str, Any]:
        self._heap.grow_for(input_bytes + output_bytes)
        self._ensure("slot", self._slots, count, input_bytes)
        self._ensure("outbox", self._outboxes, count, output_bytes)
        self._output_bytes = output_bytes
        opened = {"slots": self._slots, "outboxes": self._outboxes}
        return {"op": "open", "regions": {name: [region for region, _ in opened[name][:count]] for name in opened}}

    def upload_inputs(self, sets: Sequence[InputSet], late_inputs: LateInputs | None = None) -> None:
        self._sets, self._late_inputs = sets, late_inputs
        self._snapshots.forget()
        time.sleep(_SPIN_ENDS_S)

    def release(self, channel: Channel, sequence: int, index: int) -> None:
        # One thread's copy: a parallel one would leave a worker of ours spinning beside the timed call.
        inputs = self._sets[index]
        region = self._late_inputs.lacking(inputs) if self._lacks_pieces(index) else inputs.region
        ctypes.memmove(self._slots[index][1].data_ptr(), region.data_ptr(), region.numel())
        self._word = cpu_cache_flush.fresh_word()
        channel.send({"go": sequence, "word": self._word}, timeout_s=5.0)

    def flush_fault(self, index: int, *, inspect: bool) -> str | None:
        missed = self._cache_flush.missed(self._word)
        return f"{missed} of the words looked at were not written over" if missed else None

    def open_window(self, sequence: int, index: int) -> None:
        time.sleep(_WINDOW_S)
        if self._lacks_pieces(index):
            self._late_inputs.complete(self._slots[index][1])
        # Last of all: a worker that made nothing cold, or read its inputs meanwhile, has none of them in a cache of its.
        cpu_cache_flush.flush_lines(self._slots[index][1][: self._sets[index].size_bytes])
        self._flags.open_window(sequence)

    def release_all(self, channel: Channel, last: int) -> None:
        """Nothing is queued on a CPU; a failed launch has already ended."""

    def poll(self, channel: Channel, timeout_s: float) -> LaunchReached | CacheFlushed | dict[str, Any] | None:
        try:
            frame = channel.receive(timeout_s)
        except FrameTimeout:
            return None
        if "flushed" in frame:
            return CacheFlushed(whole_number(frame, "flushed"))
        return LaunchReached(whole_number(frame, "turn")) if "turn" in frame else frame

    def _nothing(self) -> None:
        """No kernel runs on a GPU, a call is over when it returns, regions stay in an arena that cannot shrink,
        PyTorch's allocator keeps nothing apart; there is nothing to open of a CPU, to remember, or to count.
        """

    begin_recording = synchronize = free_regions = release_memory = note_waiting_worker = settle = _nothing
    unhealthy = processes = peak_bytes = _nothing

    def end_recording(self) -> Recording:
        return Recording(fault="nothing is recorded on a CPU")

    def loaded_code(self) -> LoadedCode:
        return LoadedCode((), is_whole=True)

    def slots_unchanged(self, sets: Sequence[InputSet]) -> list[bool]:
        # By words: PyTorch compares bytes one by one, 2.1 ms for a region of 2 MiB that takes 0.3 ms so.
        return [
            torch.equal(slot[: inputs.size_bytes].view(torch.int64), inputs.region.view(torch.int64))
            for (_, slot), inputs in zip(self._slots, sets)
        ]

    def outbox(self, index: int) -> torch.Tensor:
        return self._taken[index]

    def snapshot(self, index: int) -> None:
        self._snapshots.take(index, self._outboxes[index][1][: self._output_bytes])

    def written_late(self) -> list[int]:
        return self._snapshots.changed(self._taken)

    def take_outputs(self, count: int, *, on_host: bool = False) -> None:
        self._taken = [region.clone() for _, region in self._outboxes[:count]]

    def local_launches(self, model: torch.nn.Module, sets: Sequence[InputSet], *, gate: bool) -> LocalTimes:
        time.sleep(_SPIN_ENDS_S)
        times_us, forward_us, began, mark = [], [], time.perf_counter_ns(), 0
        clock = self._stopwatch
        passes.notice_backward(model, lambda: forward_us.append(clock.microseconds(clock.stop(mark))))
        with torch.no_grad():
            for index, inputs in enumerate(sets):
                slot = self._slots[index][1]
                ctypes.memmove(slot.data_ptr(), inputs.region.data_ptr(), inputs.size_bytes)
                cpu_cache_flush.flush_lines(slot[: inputs.size_bytes])  # before the flush: it has the pages' places looked up
                self._cache_flush.run(cpu_cache_flush.fresh_word())
                # As in a worker, where nobody looks for missed words: with that, or with the arguments made last,
                # PyTorch's own code was in the cache, and eager of 0.4 ms 3 % faster than in a worker.
                arguments = inputs.arguments(slot)
                until = time.monotonic() + _WAIT_S
                while time.monotonic() < until:
                    time.sleep(_POLL_S)
                began = time.perf_counter_ns()
                mark = self._stopwatch.start()
                model(*arguments)
                times_us.append(self._stopwatch.microseconds(self._stopwatch.stop(mark)))
        return LocalTimes(times_us, (time.perf_counter_ns() - began) / 1e3, forward_us=forward_us)

    def violations(self) -> Violations:
        return Violations()

    def telemetry(self, own_pids: set[int]) -> Telemetry:
        return Telemetry()

    def power_meter(self) -> PowerMeter:
        return PowerMeter(lambda: None)

    def copy_gbytes_s(self) -> float:
        return reference_rates.copy_gbytes_s(self.torch_device, _COPY_BYTES, self._stopwatch, self.synchronize, tries=7)

    def multiply_add_tflops(self) -> float:
        return reference_rates.cpu_multiply_add_tflops(self._stopwatch)

    def event_floor_us(self) -> float:
        laps = [self._stopwatch.stop(self._stopwatch.start()) for _ in range(100)]
        return statistics.median(self._stopwatch.microseconds(lap) for lap in laps)

    def left_bytes(self, waiting: int = 0) -> int:
        return 0  # a dead process's memory is the system's again

    def has_room_for_waiting(self) -> bool:
        return False

    def visible_devices(self) -> dict[str, str]:
        return {"CUDA_VISIBLE_DEVICES": ""}

    def _lacks_pieces(self, index: int) -> bool:
        return self._late_inputs is not None and self._late_inputs.index == index

    def _ensure(self, kind: str, regions: list[_Region], count: int, size_bytes: int) -> None:
        if len(regions) >= count and all(region["bytes"] >= size_bytes for region, _ in regions[:count]):
            return
        regions.clear()
        for index in range(count):
            region = self.arena.named(f"{kind} {index}", size_bytes)
            regions.append((region, self.arena.map(**region)))


def _machine_bytes() -> int:
    """The machine's memory to the 10⁹ bytes: the system itself takes some kB more or less from one start to the next."""
    machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, round(machine_bytes / 1e9)) * 10**9
