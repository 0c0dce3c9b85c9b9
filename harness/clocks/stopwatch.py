"""Two stopwatches with one shape: CUDA events on a GPU, the monotonic clock on a CPU."""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch

_perf_counter_ns = time.perf_counter_ns
_Event = torch.cuda.Event
_event_record = torch.cuda.Event.record
_event_elapsed_ms = torch.cuda.Event.elapsed_time


class Stopwatch(Protocol):
    """`start` and `stop` bracket a call; `microseconds` reads the pair once the device has passed it."""

    name: str

    def start(self) -> Any: ...

    def stop(self, mark: Any) -> Any: ...

    def microseconds(self, lap: Any) -> float: ...


class CudaEvents:
    """Pairs of timing events on the legacy default stream, whichever stream a candidate left current."""

    name = "cuda_events"

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.default_stream(device)

    def start(self) -> torch.cuda.Event:
        event = _Event(enable_timing=True)
        _event_record(event, self._stream)
        return event

    def stop(self, mark: torch.cuda.Event) -> tuple[torch.cuda.Event, torch.cuda.Event]:
        event = _Event(enable_timing=True)
        _event_record(event, self._stream)
        return mark, event

    def microseconds(self, lap: tuple[torch.cuda.Event, torch.cuda.Event]) -> float:
        return _event_elapsed_ms(lap[0], lap[1]) * 1e3


class MonotonicClock:
    """The system's monotonic clock, in nanoseconds."""

    name = "monotonic"

    def start(self) -> int:
        return _perf_counter_ns()

    def stop(self, mark: int) -> int:
        return _perf_counter_ns() - mark

    def microseconds(self, lap: int) -> float:
        return lap / 1e3
