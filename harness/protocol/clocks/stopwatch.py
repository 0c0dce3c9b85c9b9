"""Stopwatches of one shape: PyTorch's events on a GPU, the monotonic clock on a CPU. The native one lies beside it."""

from __future__ import annotations

import itertools
import time
from typing import Any, Protocol

import torch

_perf_counter_ns = time.perf_counter_ns
MARKS = 1024  # no queue of launches takes more; a timed one takes a tenth


class Stopwatch(Protocol):
    """`start` and `stop` bracket a call; `microseconds` reads the pair once the device has passed it."""

    name: str

    def start(self) -> Any: ...

    def stop(self, mark: Any) -> Any: ...

    def microseconds(self, lap: Any) -> float: ...


class TorchEvents:
    """Pairs of `torch.cuda.Event` on the legacy default stream, for where the native stopwatch cannot be built: made
    beforehand and taken in turn, so that a mark is good until `MARKS` later ones.
    """

    name = "torch_events"

    def __init__(self, device: torch.device) -> None:
        event = torch.cuda.Event
        # As they are now: a candidate may put other functions in their place.
        self._record, self._elapsed_time = event.record, event.elapsed_time
        self._stream = torch.cuda.default_stream(device)
        events = [event(enable_timing=True) for _ in range(MARKS)]
        for each in events:
            each.record(self._stream)  # PyTorch makes the driver's event only now
        self._next = itertools.cycle(events).__next__

    def start(self) -> Any:
        event = self._next()
        self._record(event, self._stream)
        return event

    def stop(self, mark: Any) -> tuple[Any, Any]:
        return mark, self.start()

    def microseconds(self, lap: tuple[Any, Any]) -> float:
        return 1e3 * self._elapsed_time(*lap)


class MonotonicClock:
    """The system's monotonic clock, in nanoseconds."""

    name = "monotonic"

    def start(self) -> int:
        return _perf_counter_ns()

    def stop(self, mark: int) -> int:
        return _perf_counter_ns() - mark

    def microseconds(self, lap: int) -> float:
        return lap / 1e3
