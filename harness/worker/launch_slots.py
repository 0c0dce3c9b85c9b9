"""Where launches happen: slots on a GPU, or on a CPU, alike to the loop that uses them. They wait for a launch's turn,
bring its inputs into its slot, make the cache cold and keep the time. On a GPU all of that is queued in stream order
behind words of host memory that the judge releases; on a CPU it happens at once, and the turn is a frame.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import torch

from harness.protocol import cpu_cache_flush, cuda_driver, tree
from harness.protocol.arena import FLAGS_BYTES, GO_BYTE, KEY_BYTE, KEY_BYTES, SECRET_BYTES, TURN_BYTE, Arena
from harness.protocol.clocks import gpu_stopwatch
from harness.protocol.clocks.heap import SteadyHeap
from harness.protocol.clocks.stopwatch import MonotonicClock
from harness.protocol.frames import Channel
from harness.protocol.gate_kernel import Waiter
from harness.protocol.gpu_cache_flush import SUM_BYTES, GpuCacheFlush
from harness.protocol.layout import TensorSpec
from harness.protocol.markers import Closer, Markers
from harness.protocol.masking import LateInputWriter, Mask
from harness.protocol.recorder import open_recorder
from harness.protocol.rotation import Rotation
from harness.worker.outputs import Guard

_LEGACY_STREAM = 0
_WINDOW_POLL_S = 5e-5
_sleep = time.sleep
_alias = torch.Tensor.detach
_empty_cache = torch.cuda.empty_cache


class Views:
    """The tensors in some regions, worked out once for each layout: made anew they are a tenth of a launch's Python."""

    def __init__(self, regions: Sequence[torch.Tensor] = ()) -> None:
        self._regions = regions
        self._found: dict[tuple[int, int], tuple[Sequence[TensorSpec], list[torch.Tensor]]] = {}

    def of(self, index: int, specs: Sequence[TensorSpec]) -> list[torch.Tensor]:
        """Of the region `index`, the same objects each time."""
        entry = self._found.get((index, id(specs)))
        if entry is None:  # with the layout itself, whose number would else be another's one day
            entry = self._found[index, id(specs)] = specs, [spec.view(self._regions[index]) for spec in specs]
        return entry[1]

    def fresh(self, index: int, specs: Sequence[TensorSpec]) -> list[torch.Tensor]:
        """The same tensors as objects of their own, which whoever gets them may do anything with."""
        return [_alias(tensor) for tensor in self.of(index, specs)]


class _Slots:
    """What lies in the slots and outboxes that are open, on either device."""

    def _hold(self, slots: Sequence[torch.Tensor] = (), outboxes: Sequence[torch.Tensor] = ()) -> None:
        self._slots, self._inputs, self._outputs = list(slots), Views(slots), Views(outboxes)

    def inputs(self, index: int, specs: Sequence[TensorSpec]) -> list[torch.Tensor]:
        return self._inputs.fresh(index, specs)

    def outbox(self, index: int, specs: Sequence[TensorSpec]) -> list[torch.Tensor]:
        return self._outputs.of(index, specs)

    def slot_range(self, index: int) -> range:
        slot = self._slots[index]
        return range(slot.data_ptr(), slot.data_ptr() + slot.numel())


class CudaSlots(_Slots):
    """Launches on the legacy default stream of one GPU, as KernelBench makes them."""

    stream: int | None = _LEGACY_STREAM

    def __init__(self, arena: Arena, command: dict[str, Any]) -> None:
        self.device = torch.device("cuda:0")
        torch.cuda.set_device(self.device)
        torch.zeros(1, device=self.device)
        # fp32 means fp32 unless a candidate says otherwise; PyTorch's own default lets convolutions use TF32.
        torch.backends.cudnn.allow_tf32 = False
        self._flags = arena.flags()
        self._words = cuda_driver.map_host(self._flags.address, FLAGS_BYTES)
        cubin, blocks = bytes.fromhex(command["kernels"]), command["blocks"]
        self._waiter = Waiter(cubin, self._words)
        self._secret = torch.zeros(SECRET_BYTES, dtype=torch.uint8, device=self.device)
        self._mask = Mask(cubin, self._secret.data_ptr(), blocks)
        records = cuda_driver.open_ipc(bytes.fromhex(command["late_pieces"]["handle"]))
        markers = Markers(*command["markers"])
        self._late_input_writer = LateInputWriter(cubin, self._words, records, markers.opens)
        self._closer = Closer(cubin, markers.closes)
        cache_flush = command["cache_flush"]
        written, read, self._sums = (
            cuda_driver.open_ipc(bytes.fromhex(cache_flush[name]["handle"])) for name in ("written", "read", "sums")
        )
        self._cache_flush = GpuCacheFlush(
            cubin, written, read, cache_flush["read"]["bytes"], self._secret.data_ptr() + KEY_BYTES, blocks
        )
        self._rotation = Rotation(cubin)
        self._default = torch.cuda.default_stream(self.device)
        self._guard = Guard(self.device, _LEGACY_STREAM)
        library = command["stopwatch"]
        self.stopwatch = gpu_stopwatch.stopwatch_of(self.device, None if library is None else bytes.fromhex(library))
        if command["recorder"] is not None:
            with contextlib.suppress(OSError):  # the judge sees that it is not open
                open_recorder(gpu_stopwatch.loaded(bytes.fromhex(command["recorder"])), arena.descriptor, **command["recording"])
        self._staging: list[int] = []
        self._hold()
        self._opened: dict[str, int] = {}  # addresses by their handles
        self._filled_bytes = self._index = 0
        self._is_first = True

    def open(self, regions: dict[str, list[dict[str, Any]]]) -> None:
        """Map the regions of a number of launches; of an earlier call's, those that are not among them are closed."""
        torch.cuda.synchronize()
        self._hold()
        named = {region["handle"] for each in regions.values() for region in each}
        for handle in self._opened.keys() - named:
            cuda_driver.close_ipc(self._opened.pop(handle))
        self._staging = [self._address(region) for region in regions["staging"]]
        self._hold(*([self._tensor(region) for region in regions[name]] for name in ("slots", "outboxes")))

    def set_filled_bytes(self, size_bytes: int) -> None:
        self._filled_bytes = size_bytes

    def count_mail(self) -> None:
        self._flags.count_mail()

    def before_queue(self) -> None:
        """What comes before the launches of a queue."""
        # A candidate that raised the limit inside forward would wait there for the queue that waits for it.
        cuda_driver.forbid_persisting_l2()
        cuda_driver.reset_persisting_l2()
        self._is_first = True

    def plant_guard(self, specs: Sequence[TensorSpec]) -> None:
        self._guard.plant(specs)

    def guard_broken(self, result: Any) -> list[int] | None:
        return self._guard.broken(tree.flatten(result)[1])

    def wait_for_turn(self, sequence: int) -> None:
        if self._is_first:  # the judge works on the same device while this queue is held
            cuda_driver.stream_write(_LEGACY_STREAM, self._words + TURN_BYTE, sequence)
            cuda_driver.stream_wait(_LEGACY_STREAM, self._words + GO_BYTE, sequence)
            self._is_first = False
        self._waiter.wait_and_take(
            _LEGACY_STREAM, GO_BYTE, sequence, KEY_BYTE, SECRET_BYTES, self._secret.data_ptr(), TURN_BYTE
        )

    def wait_for_window(self, sequence: int) -> None:
        self._late_input_writer.run(_LEGACY_STREAM, sequence, self._slots[self._index].data_ptr(), self._filled_bytes)

    def close_window(self) -> None:
        self._closer.run(_LEGACY_STREAM)

    def signal_end(self, sequence: int) -> None:
        cuda_driver.stream_write(_LEGACY_STREAM, self._words + TURN_BYTE, sequence)

    def fill_and_flush(self, index: int) -> None:
        slot, self._index = self._slots[index], index
        self._mask.apply(_LEGACY_STREAM, self._staging[index], slot.data_ptr(), self._filled_bytes)
        self._cache_flush.run(_LEGACY_STREAM, self._sums + index * SUM_BYTES)
        self._rotation.before(_LEGACY_STREAM, index)

    def restore_stream(self) -> None:
        torch.cuda.set_stream(self._default)

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def release_memory(self) -> None:
        _empty_cache()

    def _address(self, region: dict[str, Any]) -> int:
        handle = region["handle"]
        if handle not in self._opened:  # to open one takes as long as a short launch
            self._opened[handle] = cuda_driver.open_ipc(bytes.fromhex(handle))
        return self._opened[handle]

    def _tensor(self, region: dict[str, Any]) -> torch.Tensor:
        return cuda_driver.as_bytes(self._address(region), region["bytes"], str(self.device))


class CpuSlots(_Slots):
    """Launches on the CPU; slots and outboxes are shared host memory that the judge fills at the turn."""

    stream: int | None = None

    def __init__(self, arena: Arena, command: dict[str, Any], channel: Channel) -> None:
        self.device = torch.device("cpu")
        # Not where they are as many: to set them has MKL start threads within threads, which the judge's calls do not
        # pay for. Attention took 3.9 ms in a worker on two cores, where it takes 2.5.
        if torch.get_num_threads() != command["threads"]:
            torch.set_num_threads(command["threads"])
        self._heap = SteadyHeap()
        self._arena, self._channel = arena, channel
        self._flags = arena.flags()
        self._cache_flush = cpu_cache_flush.CpuCacheFlush(arena.map(**command["flush_buffer"]), command["threads"])
        self._turn = self._word = 0
        self.stopwatch = MonotonicClock()
        self._hold()

    def open(self, regions: dict[str, list[dict[str, Any]]]) -> None:
        largest = (max((region["bytes"] for region in each), default=0) for each in regions.values())
        self._heap.grow_for(sum(largest))
        self._hold(*([self._arena.map(**region) for region in regions[name]] for name in ("slots", "outboxes")))

    def set_filled_bytes(self, size_bytes: int) -> None:
        """Nothing to note: the judge fills the slots itself."""

    def _nothing(self) -> None:
        """The judge waits for frames themselves, nothing is queued or recorded, a call is over when it returns, there
        are no streams, and the system's allocator gives back large blocks at once.
        """

    count_mail = before_queue = close_window = restore_stream = release_memory = synchronize = _nothing

    def plant_guard(self, specs: Sequence[TensorSpec]) -> None:
        """The system's allocator leaves no room behind a block: what writes there breaks the heap."""

    def guard_broken(self, result: Any) -> list[int] | None:
        return None

    def wait_for_turn(self, sequence: int) -> None:
        self._channel.send({"turn": sequence})
        answer = self._channel.receive()
        if answer.get("go") != sequence:
            raise RuntimeError("the judge and the worker disagree on whose turn it is")
        self._turn, self._word = sequence, answer["word"]

    def wait_for_window(self, sequence: int) -> None:
        while self._flags.window < sequence:
            _sleep(_WINDOW_POLL_S)

    def signal_end(self, sequence: int) -> None:
        self._channel.send({"turn": sequence})

    def fill_and_flush(self, index: int) -> None:
        self._cache_flush.run(self._word)
        self._channel.send({"flushed": self._turn})
