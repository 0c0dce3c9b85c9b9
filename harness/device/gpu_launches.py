"""The judge's own launches on a GPU: the same steps in the same order as a worker's, on the same slots."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence
from typing import Any

import torch

from harness.device.backend import LocalTimes
from harness.device.gpu_flush_buffers import GpuFlushBuffers
from harness.protocol import cuda_driver, passes, tree
from harness.protocol.arena import GO_BYTE, KEY_BYTE, KEY_BYTES, SECRET_BYTES, TURN_BYTE, Flags
from harness.protocol.clocks.stopwatch import Stopwatch
from harness.protocol.gate_kernel import Waiter
from harness.protocol.markers import Closer
from harness.protocol.masking import LateInputWriter, Mask
from harness.protocol.rotation import Rotation
from harness.reference.inputs.sets import InputSet

_LEGACY_STREAM = 0
_PATIENCE_S = 1.0
_OVERWRITE = 0xFF


class OwnLaunches:
    """Makes launches on `device`; `flags` is the judge's own page of words, which lies at `words` for the device.

    A call that a step of ours comes before or after takes another time than one without: inputs come from under a mask,
    each launch has a turn to wait for, and its outputs are copied and as much memory written over.
    """

    def __init__(
        self, device: torch.device, cubin: bytes, flags: Flags, words: int, cache: GpuFlushBuffers, blocks: int,
        stopwatch: Stopwatch,
    ) -> None:
        self._device, self._flags, self._words, self._cache = device, flags, words, cache
        self.key = secrets.token_bytes(KEY_BYTES)
        self._waiter = Waiter(cubin, words)
        self._secret = torch.zeros(SECRET_BYTES, dtype=torch.uint8, device=device)
        self._mask = Mask(cubin, self._secret.data_ptr(), blocks)
        self._late_input_writer = LateInputWriter(cubin, words, 0)  # brings nothing, as in a worker nearly always
        self._closer = Closer(cubin)
        self._rotation = Rotation(cubin)
        self._stopwatch = stopwatch
        self._taken: list[torch.Tensor] = []
        self._end = 0  # the number of the last turn

    def make(
        self, model: torch.nn.Module, sets: Sequence[InputSet], staging: Sequence[torch.Tensor],
        slots: Sequence[torch.Tensor], *, gate: bool, tight: bool = False,
    ) -> LocalTimes:
        """One launch of `model` for each set, from `staging`, where it lies under the mask of `key`, through the slot
        of the same number. Where it is `tight` a call has the memory of what the one before returned.
        """
        laps, halves, watchdog, mark = [], [], None, None
        first = self._end + 1
        self._end = end = first + len(sets)
        passes.notice_backward(model, lambda: halves.append(self._stopwatch.stop(mark)))
        cuda_driver.reset_persisting_l2()
        self._cache.draw_word()
        if gate:
            # A reference that synchronises, or loads a kernel, would wait for a release that comes after it.
            watchdog = threading.Timer(_PATIENCE_S, self._let_all_go, (end,))
            watchdog.start()
        else:
            self._let_all_go(end)
        began = time.perf_counter_ns()
        with torch.no_grad():
            for index, inputs in enumerate(sets):
                slot = slots[index]
                self._fill(first + index, index, staging[index], slot, inputs.size_bytes)
                arguments = inputs.arguments(slot)
                self._late_input_writer.run(_LEGACY_STREAM, first + index, slot.data_ptr(), inputs.size_bytes)
                mark = self._stopwatch.start()
                began = time.perf_counter_ns()
                result = model(*arguments)
                laps.append(self._stopwatch.stop(mark))
                self._closer.run(_LEGACY_STREAM)
                self._take(result)
                if tight:
                    result = None
        cuda_driver.stream_write(_LEGACY_STREAM, self._words + TURN_BYTE, end)
        hidden = None
        if watchdog is not None:
            hidden = watchdog.is_alive()
            watchdog.cancel()
            if hidden:
                self._conduct(first, end)
            self._let_all_go(end)
        torch.cuda.synchronize(self._device)
        end_to_end_us = (time.perf_counter_ns() - began) / 1e3
        read = self._stopwatch.microseconds
        return LocalTimes([read(lap) for lap in laps], end_to_end_us, hidden, [read(lap) for lap in halves])

    def forget(self) -> None:
        """Give back the copies of outputs."""
        self._taken = []

    def _fill(self, sequence: int, index: int, staged: torch.Tensor, slot: torch.Tensor, size_bytes: int) -> None:
        """From the turn of the launch numbered `sequence` to where its cache is cold."""
        if index == 0:
            cuda_driver.stream_write(_LEGACY_STREAM, self._words + TURN_BYTE, sequence)
            cuda_driver.stream_wait(_LEGACY_STREAM, self._words + GO_BYTE, sequence)
        self._waiter.wait_and_take(
            _LEGACY_STREAM, GO_BYTE, sequence, KEY_BYTE, SECRET_BYTES, self._secret.data_ptr(), TURN_BYTE
        )
        self._mask.apply(_LEGACY_STREAM, staged.data_ptr(), slot.data_ptr(), size_bytes)
        self._cache.flush()
        self._rotation.before(_LEGACY_STREAM, index)

    def _take(self, result: Any) -> None:
        """Copy the outputs as a worker does, and write over the copies: the outputs may be the model's own memory."""
        outputs = tree.flatten(result)[1]
        if [(each.shape, each.dtype) for each in self._taken] != [(each.shape, each.dtype) for each in outputs]:
            self._taken = [torch.empty(each.shape, dtype=each.dtype, device=self._device) for each in outputs]
        for place, output in zip(self._taken, outputs):
            place.copy_(output)
        for place in self._taken:
            if place.numel():
                cuda_driver.fill_bytes(_LEGACY_STREAM, place.data_ptr(), _OVERWRITE, place.nbytes)

    def _let_all_go(self, end: int) -> None:
        self._flags.open_window(end)
        self._flags.release(end, self.key)

    def _conduct(self, first: int, end: int) -> None:
        """Answer one turn after another, and open each window when the cache is cold for it, as for a worker."""
        flags, reached = self._flags, first - 1
        opened = reached
        deadline = time.monotonic() + _PATIENCE_S
        while reached < end and time.monotonic() < deadline:
            if flags.turn > reached:
                reached = flags.turn
                deadline = time.monotonic() + _PATIENCE_S
                if reached < end:
                    flags.release(reached, self.key)
            if flags.flushed > opened:
                opened = flags.flushed
                flags.open_window(opened)
