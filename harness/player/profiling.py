"""One launch under PyTorch's profiler: which kernels, or on a CPU which operators, ran inside `forward`.

Never a timed launch: the profiler slows what it watches. What is listed here is the player's word; whose kernels
they were is decided by `provenance` on the referee's side, which has the launch's output checked like any other.

The profiler's functions are taken from the C extension as this module is imported, before any candidate is, so that
patching `torch.profiler` or the classes behind it changes nothing here.
"""

from __future__ import annotations

import _thread
import secrets
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch._C._autograd import _KinetoEvent, _ProfilerResult
from torch._C._profiler import _ExperimentalConfig, _RecordFunctionFast
from torch.autograd import (
    DeviceType, ProfilerActivity, ProfilerConfig, ProfilerState, _disable_profiler, _enable_profiler, _prepare_profiler,
)

from harness.player import extensions, outputs
from harness.player.launches import Launcher
from harness.player.stages import CpuStage, CudaStage
from harness.wire import tree

_MOST_NAMES, _LONGEST_NAME, _MOST_SPANS = 200, 8000, 10_000
# Starting CUPTI takes seconds, in which a GPU's clock falls; this much work brings it back up.
_WARM_S = 0.05
_WARM_BATCH = 20
_perf_counter_ns = time.perf_counter_ns
_setprofile, _addaudithook, _current_frames = sys.setprofile, sys.addaudithook, sys._current_frames
_start_new_thread = _thread.start_new_thread
_get_ident, _clock_of, _clock_gettime_ns = threading.get_ident, time.pthread_getcpuclockid, time.clock_gettime_ns
_audit, _HEARD = sys.audit, "harness.player.profiling"
_BEGINNINGS = frozenset({
    "_thread.start_new_thread", "_thread.start_joinable_thread", "os.fork", "os.forkpty", "os.posix_spawn",
    "subprocess.Popen",
})
_events, _name, _device_type = _ProfilerResult.events, _KinetoEvent.name, _KinetoEvent.device_type
_start_ns, _duration_ns = _KinetoEvent.start_ns, _KinetoEvent.duration_ns
_start_thread_id = _KinetoEvent.start_thread_id
# Not every PyTorch has both.
_is_user_annotation = getattr(_KinetoEvent, "is_user_annotation", lambda event: False)
_activity_type = getattr(_KinetoEvent, "activity_type", None)


def profiled_launch(stage: CudaStage | CpuStage, launcher: Launcher, model: Any, first: int, skeleton: Any) -> dict:
    """Make launch `first` under the profiler.

    Returns {"names": [name], "spans": [[index, start µs, µs]], "operators": [{name, us}], "own_us", "total_us",
    "others_us", "others_began"}: when each kernel ran; the operators with their own time, and the time inside functions
    of the candidate's extensions without that in operators which they called; on a CPU also what other threads of
    Python's had of a core meanwhile, and whether threads or processes were begun.
    """
    layout = launcher.layout
    stage.wait_for_turn(first)
    stage.fill(0)
    stage.synchronize()
    arguments = tree.rebuild(skeleton, stage.inputs(0, layout.inputs))
    preparing_ns = _perf_counter_ns()
    on_gpu = stage.stream is not None
    activities = {ProfilerActivity.CPU, ProfilerActivity.CUDA} if on_gpu else {ProfilerActivity.CPU}
    config = ProfilerConfig(ProfilerState.KINETO, False, False, False, False, False, _ExperimentalConfig())
    own_calls, others = _OwnCalls(), _OtherThreads()
    _prepare_profiler(config, activities)
    if on_gpu:
        _warm_up(stage, _warm_up_s((_perf_counter_ns() - preparing_ns) / 1e9))
    with torch.no_grad():
        _enable_profiler(config, activities)
        try:
            if not on_gpu:
                others.begin()
                _setprofile(own_calls)
            began_ns = _perf_counter_ns()
            result = model(*arguments)
            stage.synchronize()
            total_us = (_perf_counter_ns() - began_ns) / 1e3
        finally:
            _setprofile(None)
            others.end()
            events = _events(_disable_profiler())
    stage.restore_stream()
    if layout.fault_of(result, stage, 0) is None:
        outputs.take(result, stage.outbox(0, layout.outputs), stage.stream)
    stage.signal_end(first + 1)
    stage.synchronize()
    on_device = [_Span.of(event) for event in events if _device_type(event) == DeviceType.CUDA and not _is_note(event)]
    times_us = _own_times_us([_Span.of(event) for event in events if _device_type(event) == DeviceType.CPU])
    return {
        **_when(on_device),
        "own_us": times_us.pop(own_calls.name, 0.0),
        "operators": _listed({name: time_us for name, time_us in times_us.items() if "::" in name}),
        "total_us": total_us, "others_us": others.spent_us, "others_began": others.began or own_calls.began,
    }


class _Span(NamedTuple):
    """When something ran, and in which thread of the host it began."""

    start_ns: int
    duration_ns: int
    name: str
    thread: int

    @classmethod
    def of(cls, event: Any) -> _Span:
        return cls(_start_ns(event), _duration_ns(event), _name(event)[:_LONGEST_NAME], _start_thread_id(event))


class _OwnCalls:
    """A profile function for the interpreter that marks calls into the candidate's extensions for the profiler.

    The mark's name is new each time, so that none of the candidate's own marks has it. `began` is whether a thread was
    started, of which Python's own hooks hear from 3.12 on.
    """

    def __init__(self) -> None:
        self.name, self.began = f"own {secrets.token_hex(8)}", False
        self._depth, self._mark = 0, None

    def __call__(self, frame: Any, event: str, function: Any) -> None:
        self.began |= function is _start_new_thread
        if not event.startswith("c_") or id(function) not in extensions.opened_functions:
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


class _OtherThreads:
    """What Python's other threads do between `begin` and `end`: no profiler follows them.

    `spent_us` is the time that those which live had of a core. One that begins meanwhile may be gone when it is looked
    for, so that `began` says whether any did, or a process, or whether that cannot be said.
    """

    def __init__(self) -> None:
        self.spent_us, self.began = 0.0, False
        self._before: dict[int, int] = {}
        self._is_watching = self._is_over = False

    def begin(self) -> None:
        _addaudithook(self._hear)
        _audit(_HEARD)
        self.began = not self._is_watching  # a hook of the candidate's own can keep others from being added
        self._before = self._clocks_ns()

    def end(self) -> None:
        if self._is_watching:
            self._is_watching, self._is_over = False, True
            after = self._clocks_ns()
            self.spent_us = sum(after[ident] - before for ident, before in self._before.items() if ident in after) / 1e3
            self.began |= self._before.keys() != after.keys()

    def _hear(self, event: str, arguments: tuple) -> None:
        if event == _HEARD:
            self._is_watching = not self._is_over  # a hook stays for as long as its process lives
        elif self._is_watching and event in _BEGINNINGS:
            self.began = True

    @staticmethod
    def _clocks_ns() -> dict[int, int]:
        found = {}
        for ident in set(_current_frames()) - {_get_ident()}:
            with suppress(OSError):  # it has just ended
                found[ident] = _clock_gettime_ns(_clock_of(ident))
        return found


# Where it takes a few hundredths only, work for as long does; a launch that is asked for again, since the first was
# unlike the timed ones, has the whole.
_LEAST_WARM_S = 0.02
_profiled_before = False


def _warm_up_s(preparing_s: float) -> float:
    """For how long to work before a launch whose profiler took `preparing_s` to get ready."""
    global _profiled_before
    again, _profiled_before = _profiled_before, True
    return _WARM_S if again else min(max(preparing_s, _LEAST_WARM_S), _WARM_S)


def _warm_up(stage: CudaStage, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for _ in range(_WARM_BATCH):
            stage.fill(0)
        stage.synchronize()


def _is_note(event: Any) -> bool:
    """A range that a candidate has marked on the device's time line, or a wait: neither is a kernel."""
    if _activity_type is None:
        return bool(_is_user_annotation(event))
    kind = _activity_type(event)
    return "annotation" in kind or "sync" in kind


def _own_times_us(spans: Iterable[_Span]) -> dict[str, float]:
    """Time in µs by name, each moment counted for the innermost span of its thread alone."""
    times: dict[str, float] = {}
    around: dict[int, list[tuple[int, str]]] = {}
    for span in sorted(spans, key=lambda span: (span.start_ns, -span.duration_ns)):
        open_here = around.setdefault(span.thread, [])
        while open_here and open_here[-1][0] <= span.start_ns:
            open_here.pop()
        if open_here:
            times[open_here[-1][1]] -= span.duration_ns / 1e3
        times[span.name] = times.get(span.name, 0.0) + span.duration_ns / 1e3
        open_here.append((span.start_ns + span.duration_ns, span.name))
    return {name: max(0.0, time_us) for name, time_us in times.items()}


def _when(spans: list[_Span]) -> dict[str, Any]:
    """The longest of the spans, by their names' places in a list and from the first one's start on."""
    kept = sorted(sorted(spans, key=lambda span: -span.duration_ns)[:_MOST_SPANS])
    names = {name: place for place, name in enumerate(dict.fromkeys(span.name for span in kept))}
    first_ns = kept[0].start_ns if kept else 0
    return {
        "names": list(names)[:_MOST_NAMES],
        "spans": [
            [names[span.name], (span.start_ns - first_ns) / 1e3, span.duration_ns / 1e3]
            for span in kept if names[span.name] < _MOST_NAMES
        ],
    }


def _listed(times_us: dict[str, float]) -> list[dict[str, Any]]:
    longest = sorted(times_us.items(), key=lambda item: -item[1])[:_MOST_NAMES]
    return [{"name": name, "us": time_us} for name, time_us in longest]
