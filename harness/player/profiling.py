"""One launch under PyTorch's profiler: which kernels, or on a CPU which operators, ran inside `forward`.

Never a timed launch: the profiler slows what it watches. What is listed here is the player's word; whose kernels
they were is decided by `provenance` on the referee's side, which has the launch's output checked like any other.

The profiler's functions are taken from the C extension as this module is imported, before any candidate is, so that
patching `torch.profiler` changes nothing here.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Iterable
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig, _RecordFunctionFast
from torch.autograd import (
    DeviceType, ProfilerActivity, ProfilerConfig, ProfilerState, _disable_profiler, _enable_profiler, _prepare_profiler,
)

from harness.player import extensions, outputs
from harness.player.launches import Launcher
from harness.player.stages import CpuStage, CudaStage
from harness.wire import tree

_MOST_NAMES, _LONGEST_NAME = 200, 8000
# Starting CUPTI takes seconds, in which a GPU's clock falls; this much work brings it back up.
_WARM_S = 0.05
_WARM_BATCH = 20
_perf_counter_ns = time.perf_counter_ns
_setprofile = sys.setprofile


def profiled_launch(stage: CudaStage | CpuStage, launcher: Launcher, model: Any, first: int, skeleton: Any) -> dict:
    """Make launch `first` under the profiler.

    Returns {"kernels": [{name, us}], "busy_us", "operators": [{name, us}], "own_us", "total_us"}: the kernels with
    the time in which at least one of them ran; the operators with their own time, and the time inside functions of
    the candidate's extensions without that in operators which they called.
    """
    layout = launcher.layout
    stage.wait_for_turn(first)
    stage.fill(0)
    stage.synchronize()
    arguments = tree.rebuild(skeleton, stage.inputs(0, layout.inputs))
    on_gpu = stage.stream is not None
    activities = {ProfilerActivity.CPU, ProfilerActivity.CUDA} if on_gpu else {ProfilerActivity.CPU}
    config = ProfilerConfig(ProfilerState.KINETO, False, False, False, False, False, _ExperimentalConfig())
    own_calls = _OwnCalls()
    _prepare_profiler(config, activities)
    if on_gpu:
        _warm_up(stage)
    with torch.no_grad():
        _enable_profiler(config, activities)
        try:
            if not on_gpu:
                _setprofile(own_calls)
            began_ns = _perf_counter_ns()
            result = model(*arguments)
            stage.synchronize()
            total_us = (_perf_counter_ns() - began_ns) / 1e3
        finally:
            _setprofile(None)
            events = _disable_profiler().events()
    stage.restore_stream()
    if layout.fault_of(result, stage, 0) is None:
        outputs.take(result, stage.outbox(0, layout.outputs), stage.stream)
    stage.signal_end(first + 1)
    stage.synchronize()
    kernels = [event for event in events if event.device_type() == DeviceType.CUDA and not _is_note(event)]
    times_us = _own_times_us([event for event in events if event.device_type() == DeviceType.CPU])
    return {
        "kernels": _listed(_summed((event.name(), event.duration_ns() / 1e3) for event in kernels)),
        "busy_us": _busy_ns([(event.start_ns(), event.duration_ns()) for event in kernels]) / 1e3,
        "own_us": times_us.pop(own_calls.name, 0.0),
        "operators": _listed({name: time_us for name, time_us in times_us.items() if "::" in name}),
        "total_us": total_us,
    }


class _OwnCalls:
    """A profile function for the interpreter that marks calls into the candidate's extensions for the profiler.

    The mark's name is new each time, so that none of the candidate's own marks has it.
    """

    def __init__(self) -> None:
        self.name = f"own {secrets.token_hex(8)}"
        self._depth, self._mark = 0, None

    def __call__(self, frame: Any, event: str, function: Any) -> None:
        if not event.startswith("c_") or getattr(function, "__module__", None) not in extensions.opened_modules:
            return
        if event == "c_call":
            self._depth += 1
            if self._depth == 1:
                self._mark = _RecordFunctionFast(self.name)
                self._mark.__enter__()
        else:
            self._depth -= 1
            if self._depth == 0:
                self._mark.__exit__(None, None, None)


def _warm_up(stage: CudaStage) -> None:
    deadline = time.monotonic() + _WARM_S
    while time.monotonic() < deadline:
        for _ in range(_WARM_BATCH):
            stage.fill(0)
        stage.synchronize()


def _is_note(event: Any) -> bool:
    """A range that a candidate has marked on the device's time line, or a wait: neither is a kernel."""
    kind = getattr(event, "activity_type", None)
    if kind is not None and kind():
        return "annotation" in kind() or "sync" in kind()
    return bool(event.is_user_annotation())


def _own_times_us(events: Iterable[Any]) -> dict[str, float]:
    """Time in µs by name, each moment counted for the innermost event of its thread alone."""
    times: dict[str, float] = {}
    ends: dict[int, list[tuple[int, str]]] = {}
    for event in sorted(events, key=lambda event: (event.start_ns(), -event.duration_ns())):
        name, start_ns, duration_ns = event.name(), event.start_ns(), event.duration_ns()
        around = ends.setdefault(event.start_thread_id(), [])
        while around and around[-1][0] <= start_ns:
            around.pop()
        if around:
            times[around[-1][1]] -= duration_ns / 1e3
        times[name] = times.get(name, 0.0) + duration_ns / 1e3
        around.append((start_ns + duration_ns, name))
    return {name: max(0.0, time_us) for name, time_us in times.items()}


def _busy_ns(spans: list[tuple[int, int]]) -> int:
    """How long at least one of the spans (start, duration) was open."""
    busy = end = 0
    for start, duration in sorted(spans):
        busy += max(0, start + duration - max(start, end))
        end = max(end, start + duration)
    return busy


def _summed(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    times_us: dict[str, float] = {}
    for name, time_us in pairs:
        times_us[name] = times_us.get(name, 0.0) + time_us
    return times_us


def _listed(times_us: dict[str, float]) -> list[dict[str, Any]]:
    longest = sorted(times_us.items(), key=lambda item: -item[1])[:_MOST_NAMES]
    return [{"name": name[:_LONGEST_NAME], "us": time_us} for name, time_us in longest]
