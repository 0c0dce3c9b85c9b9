"""A backend on one NVIDIA GPU: memory that a worker opens too, masked inputs, flags in mapped host memory."""

from __future__ import annotations

import contextlib
import os
import secrets
import statistics
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from harness.attribution.loaded_code import LoadedCode
from harness.attribution.recording import Recording
from harness.build.toolchain import find_host_compiler
from harness.device import reference_rates
from harness.device.backend import CacheFlushed, LaunchReached, LocalTimes
from harness.device.energy import PowerMeter
from harness.device.gpu_flush_buffers import GpuFlushBuffers
from harness.device.gpu_launches import OwnLaunches
from harness.device.gpu_regions import GpuRegions, handle_of, shared_region
from harness.device.health import Health
from harness.device.identity import DeviceIdentity, Telemetry, Violations
from harness.device.kernel_recorder import KernelRecorder
from harness.device.nvml import Nvml
from harness.device.output_snapshots import OutputSnapshots
from harness.model.device_limits import CUDA
from harness.model.errors import InputError
from harness.protocol import cuda_driver, gate_kernel, gpu_cache_flush, markers, masking, nvrtc, rotation
from harness.protocol.arena import FLAGS_BYTES, KEY_BYTES, Arena, Flags
from harness.protocol.clocks import gpu_stopwatch
from harness.protocol.frames import Channel, FrameTimeout
from harness.protocol.layout import REGION_BYTES
from harness.protocol.recorder import CPP
from harness.reference.inputs.late_inputs import MOST_PIECES, PIECE_BYTES, LateInputs
from harness.reference.inputs.sets import InputSet, still_hold

_LEGACY_STREAM = 0
# Longer than the interpreter's switch interval, so that other threads get their turn between system calls.
_SPIN_S = 0.012
_COPY_BYTES = 2 << 30
_LEFT_TO_WORKER = 0.05  # a plan of memory counts what is cached; this is for what it did not foresee
_CLEARED_BYTES = 64 << 20
_WORTH_RELEASING = 0.02  # of the memory, where it is cached here
# What contexts, libraries and loaded kernels of the judge's process, of the worker's and of one that waits take.
_CONTEXTS_BYTES = 2 << 30
_RECORDS_BYTES = 2 * PIECE_BYTES * MOST_PIECES  # places and pieces of inputs that come with the window


class CudaBackend:
    """The judge's half of the launches on `cuda:index`."""

    kind = "cuda"
    limits = CUDA
    transport = "cuda_ipc"
    l2_policy = gpu_cache_flush.POLICY

    def __init__(self, index: int = 0) -> None:
        self.torch_device = torch.device("cuda", index)
        torch.cuda.set_device(self.torch_device)
        _let_blocks_grow()
        torch.zeros(1, device=self.torch_device)
        self._properties = torch.cuda.get_device_properties(index)
        self._nvml = Nvml(str(self._properties.uuid))
        self.identity = self._identify()
        building = ThreadPoolExecutor(2)
        compiler = find_host_compiler()
        library, recorder = (  # while NVRTC compiles the kernels
            building.submit(gpu_stopwatch.compiled, compiler, text) for text in (gpu_stopwatch.SOURCE, CPP.read_text(encoding="utf-8"))
        )
        building.shutdown(wait=False)
        self.arena = Arena.create()
        self._flags = self.arena.flags()
        own_flags = Arena.create().flags()
        own_words = cuda_driver.map_host(own_flags.address, FLAGS_BYTES)
        source = masking.SOURCE + gpu_cache_flush.SOURCE + gate_kernel.SOURCE + rotation.SOURCE + markers.SOURCE
        self._cubin = nvrtc.compile_cubin(source, self._properties.major, self._properties.minor)
        self._blocks = 4 * self._properties.multi_processor_count
        self._masks = masking.Masks(self._cubin, self._blocks, self.torch_device)
        self._cache = GpuFlushBuffers(self._properties.L2_cache_size, self.torch_device, self._cubin, self._blocks)
        self._recorder, self.markers = KernelRecorder(self.arena, recorder.result()), markers.PLAIN
        self._library = library.result()
        self._stopwatch = gpu_stopwatch.stopwatch_of(self.torch_device, self._library)
        self.timer = self._stopwatch.name
        shared = own_flags, own_words, self._cache
        self._own = OwnLaunches(self.torch_device, self._cubin, *shared, self._blocks, self._stopwatch)
        self._regions = GpuRegions(("staging", "slots", "outboxes"), self.torch_device)
        self._ballast = Ballast(self.torch_device)
        self._is_tight = False
        self._keys: list[bytes] = []
        self._records = shared_region(_RECORDS_BYTES, self.torch_device)
        self._late_inputs: LateInputs | None = None
        self._opening_key = bytes(KEY_BYTES)
        self._word = 0
        self._taken: list[torch.Tensor] = []
        self._output_bytes = 0
        self._snapshots = OutputSnapshots(self.torch_device)
        self._reached = self._flushed = self._mail = 0
        self._health = Health(self.torch_device, self._raw_bytes, self._stopwatch)
        # A process may open one backend after another, and what the driver holds does not go with the objects.
        kept = [*self._cache.regions.values(), self._records]
        weakref.finalize(self, _give_back, own_flags, self._regions, kept).atexit = False

    def prepare_command(self) -> dict[str, Any]:
        self._reached = self._flushed = self._mail = 0
        self._flags.reset()
        self.arena.reclaim()
        self.markers = markers.drawn()
        return {
            "op": "prepare", "device": "cuda", "kernels": markers.renamed(self._cubin, self.markers).hex(),
            "markers": self.markers, "blocks": self._blocks, **self._recorder.command(),
            "cache_flush": self._cache.command(), "late_pieces": handle_of(self._records),
            "stopwatch": None if self._library is None else self._library.hex(),
        }

    def available_bytes(self) -> int:
        return max(0, self._health.free_for_harness_bytes() - _CONTEXTS_BYTES)

    def limit_memory(self, limit_bytes: int | None) -> None:
        self._ballast.leave(limit_bytes)

    def open(self, count: int, input_bytes: int, output_bytes: int, *, tight: bool = False) -> dict[str, Any]:
        wanted = [("slots", count, input_bytes), ("outboxes", 1 if tight else count, output_bytes)]
        for name, regions, size_bytes in wanted if tight else [("staging", count, input_bytes), *wanted]:
            self._regions.ensure(name, regions, size_bytes, self.synchronize)
        self._is_tight, self._output_bytes = tight, output_bytes
        opened = {"staging": self._staging, "slots": self._regions["slots"], "outboxes": self._outboxes(count)}
        return {"op": "open", "regions": {name: [handle_of(each) for each in opened[name]] for name in opened}}

    def close_regions(self) -> dict[str, Any]:
        return {"op": "open", "regions": {"staging": [], "slots": [], "outboxes": []}}

    def free_regions(self) -> None:
        self.synchronize()
        self._regions.free()

    def forget_launches(self) -> None:
        self.free_regions()
        self._taken = []
        self._own.forget()

    @property
    def _staging(self) -> list[torch.Tensor]:
        """Where inputs lie under their masks."""
        return self._regions["slots" if self._is_tight else "staging"]

    def _outboxes(self, count: int) -> list[torch.Tensor]:
        outboxes = self._regions["outboxes"]
        return outboxes[:1] * count if self._is_tight else outboxes

    def upload_inputs(self, sets: Sequence[InputSet], late_inputs: LateInputs | None = None) -> None:
        total_bytes = self._properties.total_memory - self._ballast_bytes
        if self._cached_bytes() > _WORTH_RELEASING * total_bytes:
            free_bytes, _ = torch.cuda.mem_get_info(self.torch_device)
            if free_bytes < _LEFT_TO_WORKER * total_bytes:
                self.release_memory()  # what truths took is no use to the worker while it is cached here
        self._snapshots.forget()
        self._flushed = self._flags.flushed  # a queue that was let run out leaves words that nobody looked at
        self._keys = [secrets.token_bytes(KEY_BYTES) for _ in sets]
        self._late_inputs = late_inputs
        if late_inputs is not None:
            self._opening_key = secrets.token_bytes(KEY_BYTES)
            records = late_inputs.records().view(torch.uint8).flatten()
            self._put_masked([records], [self._records], [self._opening_key])
        together = len(sets) if not self._is_tight else 1
        for first in range(0, len(sets), together):
            numbers = range(first, min(first + together, len(sets)))
            sources = [late_inputs.lacking(sets[at]) if self._lacks_pieces(at) else sets[at].region for at in numbers]
            self._put_masked(sources, self._staging[first:], self._keys[first:])
            del sources
        self.synchronize()

    def _put_masked(
        self, sources: Sequence[torch.Tensor], targets: Sequence[torch.Tensor], keys: Sequence[bytes]
    ) -> None:
        """Each source under its own key into the target of the same number; what is of one length goes together."""
        of_size: dict[int, list[masking.Masked]] = {}
        for source, target, key in zip(sources, targets, keys):
            together = of_size.setdefault(source.numel(), [])
            together.append(masking.Masked(source.data_ptr(), target.data_ptr(), key))
        for size_bytes, together in of_size.items():
            self._masks.apply(_LEGACY_STREAM, together, size_bytes)

    def _lacks_pieces(self, index: int) -> bool:
        return self._late_inputs is not None and self._late_inputs.index == index

    def release(self, channel: Channel, sequence: int, index: int) -> None:
        self._word = secrets.randbits(64)
        self._flags.release(sequence, self._keys[index], self._word)

    def open_window(self, sequence: int, index: int) -> None:
        if self._lacks_pieces(index):
            self._flags.open_window(sequence, self._opening_key, self._late_inputs.places.numel())
        else:
            self._flags.open_window(sequence)

    def flush_fault(self, index: int, *, inspect: bool) -> str | None:
        return self._cache.fault(index, self._word) if inspect else None

    def release_all(self, channel: Channel, last: int) -> None:
        self._flags.open_window(last)
        self._flags.release(last, bytes(KEY_BYTES))

    def begin_recording(self) -> None:
        self._recorder.begin()

    def end_recording(self) -> Recording:
        return self._recorder.end()

    def loaded_code(self) -> LoadedCode:
        return self._recorder.loaded_code()

    def poll(self, channel: Channel, timeout_s: float) -> LaunchReached | CacheFlushed | dict[str, Any] | None:
        deadline = time.perf_counter() + timeout_s
        while True:
            until = min(time.perf_counter() + _SPIN_S, deadline)
            while self._flags.mail == self._mail and time.perf_counter() < until:
                turn = self._flags.turn
                if turn != self._reached:
                    self._reached = turn
                    return LaunchReached(turn)
                flushed = self._flags.flushed
                if flushed != self._flushed:
                    self._flushed = flushed
                    return CacheFlushed(flushed)
            mail = self._flags.mail
            if channel.readable():
                try:
                    return channel.receive(timeout_s=5.0)
                except FrameTimeout:
                    return None
            self._mail = mail  # a frame is sent before it is counted, so none of those counted is left
            if time.perf_counter() >= deadline:
                return None

    def slots_unchanged(self, sets: Sequence[InputSet]) -> Sequence[bool]:
        return still_hold(self._regions["slots"], sets)

    def outbox(self, index: int) -> torch.Tensor:
        return self._taken[0 if self._is_tight else index]

    def snapshot(self, index: int) -> None:
        if not self._is_tight or index == len(self._keys) - 1:  # where the last one's output is the only one that stays
            self._snapshots.take(index, self._outboxes(index + 1)[index][: self._output_bytes])

    def written_late(self) -> list[int]:
        return self._snapshots.changed(self._taken * len(self._keys) if self._is_tight else self._taken)

    def take_outputs(self, count: int, *, on_host: bool = False) -> None:
        outboxes = [region[: self._output_bytes].view(torch.int64) for region in self._outboxes(count)[:count]]
        if self._is_tight:
            outboxes = outboxes[-1:]
        sizes = [8 * each.numel() for each in outboxes]
        if [each.numel() for each in self._taken] != sizes or any(each.is_cuda is on_host for each in self._taken):
            self._taken = []  # first, so that the allocator can use the old ones' memory
            how = {"pin_memory": True} if on_host else {"device": self.torch_device}
            self._taken = [torch.empty(size_bytes, dtype=torch.uint8, **how) for size_bytes in sizes]
        torch._foreach_copy_([each.view(torch.int64) for each in self._taken], outboxes)  # one step for all
        self._note_use(always=False)

    def local_launches(self, model: torch.nn.Module, sets: Sequence[InputSet], *, gate: bool) -> LocalTimes:
        together = 1 if self._is_tight else len(sets)
        for first in range(0, len(sets), together):
            regions = [each.region for each in sets[first : first + together]]
            self._put_masked(regions, self._staging[first:], [self._own.key] * len(regions))
            del regions  # before the next are drawn
        return self._own.make(model, sets, self._staging, self._regions["slots"], gate=gate, tight=self._is_tight)

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.torch_device)

    def processes(self) -> set[int] | None:
        return self._nvml.processes()

    def violations(self) -> Violations:
        return self._nvml.violations()

    def telemetry(self, own_pids: set[int]) -> Telemetry:
        return self._nvml.telemetry(own_pids)

    def power_meter(self) -> PowerMeter:
        return PowerMeter(self._nvml.energy_mj)

    def copy_gbytes_s(self) -> float:
        free_bytes, _ = torch.cuda.mem_get_info(self.torch_device)
        size_bytes = min(_COPY_BYTES, free_bytes // 4)
        measured = reference_rates.copy_gbytes_s(self.torch_device, size_bytes, self._stopwatch, self.synchronize, tries=12)
        torch.cuda.empty_cache()
        return measured

    def multiply_add_tflops(self) -> float:
        device, stopwatch = self.torch_device, self._stopwatch
        return reference_rates.gpu_multiply_add_tflops(self._properties, device, stopwatch, self.synchronize)

    def event_floor_us(self) -> float:
        times_us = []
        for _ in range(20):
            mark = self._stopwatch.start()
            lap = self._stopwatch.stop(mark)
            self.synchronize()
            times_us.append(self._stopwatch.microseconds(lap))
        return statistics.median(times_us)

    def unhealthy(self) -> str | None:
        return self._health.trouble()

    def settle(self) -> None:
        self._health.settle()

    def left_bytes(self, waiting: int = 0) -> int:
        return self._health.left_bytes(waiting)

    def peak_bytes(self) -> int:
        return self._health.peak_bytes()

    def note_waiting_worker(self) -> None:
        self._health.note_waiting_worker()

    def has_room_for_waiting(self) -> bool:
        return self._health.has_room_for_waiting()

    def _raw_bytes(self) -> int:
        shared = (*self._regions.all(), *self._cache.regions.values(), self._records, *self._ballast.regions)
        return sum(region.numel() for region in shared)

    def release_memory(self) -> None:
        self._note_use(always=True)
        before_bytes, _ = torch.cuda.mem_get_info(self.torch_device)
        torch.cuda.empty_cache()
        after_bytes, _ = torch.cuda.mem_get_info(self.torch_device)
        if after_bytes - before_bytes > _CLEARED_BYTES:
            self._health.wait_until_cleared()

    def _cached_bytes(self) -> int:
        """What PyTorch keeps here of memory that nothing lies in, which it knows without the driver."""
        held = torch.cuda.memory_stats_as_nested_dict(self.torch_device)
        return held["reserved_bytes"]["all"]["current"] - held["allocated_bytes"]["all"]["current"]

    def _note_use(self, *, always: bool) -> None:
        self._health.note_use(self._ballast_bytes, always=always)

    @property
    def _ballast_bytes(self) -> int:
        return sum(region.numel() for region in self._ballast.regions)

    def visible_devices(self) -> dict[str, str]:
        return {"CUDA_VISIBLE_DEVICES": str(self.identity.uuid)}

    def _identify(self) -> DeviceIdentity:
        properties = self._properties
        uuid = str(properties.uuid)
        return DeviceIdentity(
            kind="cuda", name=properties.name, uuid=uuid if uuid.startswith("GPU-") else f"GPU-{uuid}",
            sm=f"{properties.major}.{properties.minor}", sm_count=properties.multi_processor_count,
            l2_bytes=properties.L2_cache_size, memory_bytes=properties.total_memory, driver=self._nvml.driver(),
            cuda=torch.version.cuda, torch=torch.__version__, power_limit_w=self._nvml.power_limit_w(),
        )


def _let_blocks_grow() -> None:
    """Have PyTorch's allocator take memory in pages that it can map anew, where this system can: a slice of an output
    that lies in a block of gigabytes else keeps it from the next tensor of that size, and on an H100 calls with 8 GiB
    in and out had no room. To keep blocks whole instead took a quarter longer to judge a call with 16 GiB of inputs.
    """
    setting = getattr(torch._C, "_accelerator_setAllocatorSettings", None)  # of a later PyTorch
    with contextlib.suppress(AttributeError, RuntimeError):  # it is PyTorch's to rename
        (setting or torch.cuda.memory._set_allocator_settings)("expandable_segments:True")


def _give_back(flags: Flags, regions: GpuRegions, others: Sequence[torch.Tensor]) -> None:
    with contextlib.suppress(cuda_driver.DriverError, RuntimeError):  # a context that is lost holds nothing any more
        torch.cuda.synchronize()
        cuda_driver.unmap_host(flags.address)
        for region in (*regions.all(), *others):
            cuda_driver.free(region.data_ptr())


def cuda_is_there() -> bool:
    """Whether PyTorch can use a GPU here; CUDA_VISIBLE_DEVICES is honoured."""
    return os.environ.get("CUDA_VISIBLE_DEVICES") != "" and torch.cuda.is_available()


_PIECE_BYTES = 1 << 30


class Ballast:
    """Memory of `device` that is taken and never used, so that the rest is that of a smaller card; nothing at first."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.regions: list[torch.Tensor] = []
        self._limit_bytes: int | None = None

    def leave(self, limit_bytes: int | None) -> None:
        """Hold all but `limit_bytes` of the card's memory, or nothing (None). Raises InputError where it has less."""
        if limit_bytes == self._limit_bytes:
            return
        _, total_bytes = torch.cuda.mem_get_info(self._device)
        wanted_bytes = 0 if limit_bytes is None else total_bytes - limit_bytes
        if wanted_bytes < 0:
            words = f"memory_gb is {limit_bytes / 1e9:.1f}, and the GPU has {total_bytes / 1e9:.1f} GB"
            raise InputError(words, hint="Give less, or leave it out")
        self._limit_bytes = limit_bytes
        regions, self.regions = self.regions, []
        for region in regions:
            cuda_driver.free(region.data_ptr())
        while wanted_bytes >= REGION_BYTES:
            size_bytes = min(wanted_bytes, _PIECE_BYTES)
            self.regions.append(cuda_driver.as_bytes(cuda_driver.allocate(size_bytes), size_bytes, str(self._device)))
            wanted_bytes -= size_bytes
