"""The referee's own launches on a GPU: the same steps in the same order as a player's, on the same slots."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import torch

from harness.clocks.stopwatch import CudaEvents
from harness.device.bench import LocalTimes
from harness.device.gpu_cache import GpuCache
from harness.inputs.sets import InputSet
from harness.wire import cuda_driver, passes
from harness.wire.arena import COOLED_BYTE, GO_BYTE, OPENING_BYTE, OPENING_BYTES, WINDOW_BYTE, Flags
from harness.wire.masking import Completer
from harness.wire.rotation import Rotation
from harness.wire.waiting import Waiter

_LEGACY_STREAM = 0
_PATIENCE_S = 1.0


class OwnLaunches:
    """Makes launches on `device`; `flags` is the referee's own page of words, which lies at `words` for the device."""

    def __init__(self, device: torch.device, cubin: bytes, flags: Flags, words: int, cache: GpuCache) -> None:
        self._device, self._flags, self._words, self._cache = device, flags, words, cache
        self._waiter = Waiter(cubin, words)
        self._opening = torch.zeros(OPENING_BYTES, dtype=torch.uint8, device=device)
        self._completer = Completer(cubin, 0, self._opening.data_ptr())  # brings nothing, as in a player nearly always
        self._rotation = Rotation(cubin)
        self._stopwatch = CudaEvents(device)
        self._sequence = 0

    def make(
        self, model: torch.nn.Module, sets: Sequence[InputSet], slots: Sequence[torch.Tensor], *, hold: bool
    ) -> LocalTimes:
        """One launch of `model` for each set, through the slot of the same number."""
        laps, halves, watchdog, mark = [], [], None, None
        first, last = self._sequence + 1, self._sequence + len(sets)
        self._sequence = last
        passes.notice_backward(model, lambda: halves.append(self._stopwatch.stop(mark)))
        cuda_driver.reset_persisting_l2()
        self._cache.draw_word()
        if hold:
            self._waiter.wait(_LEGACY_STREAM, GO_BYTE, first)
            # A reference that synchronises, or loads a kernel, would wait for a release that comes after it.
            watchdog = threading.Timer(_PATIENCE_S, self._let_all_go, (first, last))
            watchdog.start()
        else:
            self._let_all_go(first, last)
        began = time.perf_counter_ns()
        with torch.no_grad():
            for index, inputs in enumerate(sets):
                slot = slots[index]
                slot[: inputs.region.numel()].copy_(inputs.region)
                self._cache.cool()
                self._rotation.before(_LEGACY_STREAM, index)
                cuda_driver.stream_write(_LEGACY_STREAM, self._words + COOLED_BYTE, first + index)
                arguments = inputs.arguments(slot)
                self._waiter.wait_and_take(
                    _LEGACY_STREAM, WINDOW_BYTE, first + index, OPENING_BYTE, OPENING_BYTES, self._opening.data_ptr()
                )
                self._completer.run(_LEGACY_STREAM, slot.data_ptr(), inputs.region.numel())
                mark = self._stopwatch.start()
                began = time.perf_counter_ns()
                model(*arguments)
                laps.append(self._stopwatch.stop(mark))
        hidden = None
        if watchdog is not None:
            hidden = watchdog.is_alive()
            watchdog.cancel()
            if hidden:
                self._open_windows(first, last)
            self._let_all_go(first, last)
        torch.cuda.synchronize(self._device)
        end_to_end_us = (time.perf_counter_ns() - began) / 1e3
        read = self._stopwatch.microseconds
        return LocalTimes([read(lap) for lap in laps], end_to_end_us, hidden, [read(lap) for lap in halves])

    def _let_all_go(self, first: int, last: int) -> None:
        self._flags.open_window(last)
        self._flags.let_go(first)

    def _open_windows(self, first: int, last: int) -> None:
        """Open one window after another, each when the cache is cold for it, as a player's windows open."""
        flags, opened = self._flags, first - 1
        flags.let_go(first)
        deadline = time.monotonic() + _PATIENCE_S
        while opened < last and time.monotonic() < deadline:
            cooled = flags.cooled
            if cooled > opened:
                flags.open_window(cooled)
                opened = cooled
                deadline = time.monotonic() + _PATIENCE_S
