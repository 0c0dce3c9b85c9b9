"""Two stopwatches with one shape: CUDA events on a GPU, the monotonic clock on a CPU."""

from __future__ import annotations

import ctypes
import itertools
import sys
import time
from typing import Any, Protocol

import torch

_perf_counter_ns = time.perf_counter_ns
_EVENTS = 1024  # several times what the longest queue of launches takes


class Stopwatch(Protocol):
    """`start` and `stop` bracket a call; `microseconds` reads the pair once the device has passed it."""

    name: str

    def start(self) -> Any: ...

    def stop(self, mark: Any) -> Any: ...

    def microseconds(self, lap: Any) -> float: ...


class CudaEvents:
    """Pairs of timing events on the legacy default stream, whichever stream a candidate left current.

    They are the driver's own, made beforehand and taken in turn: recording one is a single call from Python, which
    matters where a queue cannot be held, and PyTorch has no part in it. A mark is good until `_EVENTS` later ones.
    Raises RuntimeError where the driver refuses.
    """

    name = "cuda_events"

    def __init__(self, device: torch.device) -> None:
        torch.cuda.set_device(device)
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        create, self._record, self._elapsed = (
            library.cuEventCreate, library.cuEventRecord, library.cuEventElapsedTime,
        )
        create.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint]
        self._record.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._elapsed.argtypes = [ctypes.POINTER(ctypes.c_float), ctypes.c_void_p, ctypes.c_void_p]
        events = []
        for _ in range(_EVENTS):
            event = ctypes.c_void_p()
            _check(create(ctypes.byref(event), 0))
            events.append(event.value)
        self._next = itertools.cycle(events).__next__

    def start(self) -> int:
        event = self._next()
        _check(self._record(event, None))
        return event

    def stop(self, mark: int) -> tuple[int, int]:
        event = self._next()
        _check(self._record(event, None))
        return mark, event

    def microseconds(self, lap: tuple[int, int]) -> float:
        milliseconds = ctypes.c_float()
        _check(self._elapsed(ctypes.byref(milliseconds), *lap))
        return milliseconds.value * 1e3


def _check(code: int) -> None:
    if code:  # most often an earlier kernel's fault, which every later call reports
        raise RuntimeError(f"CUDA error {code}, found when a timing event was to be recorded or read")


class MonotonicClock:
    """The system's monotonic clock, in nanoseconds."""

    name = "monotonic"

    def start(self) -> int:
        return _perf_counter_ns()

    def stop(self, mark: int) -> int:
        return _perf_counter_ns() - mark

    def microseconds(self, lap: int) -> float:
        return lap / 1e3
