"""One launch on a CPU under PyTorch's profiler: which operators ran inside `forward`, when the candidate's own
extensions did, and what other threads did meanwhile, which no profiler follows. A GPU's launches have the recorder.

Never a timed launch: the profiler slows what it watches. What is listed is the worker's word; whose work it was is
decided by `attribution` on the judge's side. The functions of the profiler and of Python are taken as this module is
imported, before any candidate is, so that patching them or `torch.profiler` changes nothing.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch._C._autograd import _KinetoEvent, _ProfilerResult
from torch._C._profiler import _ExperimentalConfig, _RecordFunctionFast
from torch.autograd import (
    ProfilerActivity, ProfilerConfig, ProfilerState, _disable_profiler, _enable_profiler, _prepare_profiler,
)

from harness.protocol import tree
from harness.worker import address_use, extensions, outputs
from harness.worker.launch_slots import CpuSlots
from harness.worker.loop import Launcher

_perf_counter_ns = time.perf_counter_ns
_setprofile = sys.setprofile
_events = _ProfilerResult.events
_name, _start_thread_id = _KinetoEvent.name, _KinetoEvent.start_thread_id
_start_ns, _duration_ns = _KinetoEvent.start_ns, _KinetoEvent.duration_ns
_start_new_thread, _urandom = _thread.start_new_thread, os.urandom
_addaudithook, _current_frames = sys.addaudithook, sys._current_frames
_get_ident, _clock_of, _clock_gettime_ns = threading.get_ident, time.pthread_getcpuclockid, time.clock_gettime_ns
_audit, _HEARD = sys.audit, "harness.worker.profiler"
_BEGINNINGS = frozenset({
    "_thread.start_new_thread", "_thread.start_joinable_thread", "os.fork", "os.forkpty", "os.posix_spawn",
    "subprocess.Popen",
})
_MOST_NAMES, _LONGEST_NAME = 200, 8000


class _Idle:
    """Called as a model is, and no module of PyTorch's, since whoever hooks into those would be called, too."""

    def __call__(self, *arguments: Any) -> Any:
        return self._forward(*arguments)

    def _forward(self, *arguments: Any) -> Any:
        return self.forward(*arguments)

    def forward(self, argument: Any) -> Any:
        return argument


def profiled_launch(slots: CpuSlots, launcher: Launcher, model: Any, first: int, skeleton: Any) -> dict:
    """Make launch `first` under the profiler.

    Returns {"operators": [{name, us}], "own_us", "total_us", "others_us", "others_began", "called_back", "idle_us",
    "addresses"}: the operators, in whatever thread, with their own time, and the time inside functions and operators of
    the candidate's extensions without that in operators which they called; what other threads of Python's had of a core
    meanwhile, whether threads or processes were begun, whether an extension had Python run something, how long the call
    of a model that does nothing took, watched alike, and which functions Python was asked the address of since the
    candidate came, with the files whose code has come since from where nothing is installed.
    """
    layout = launcher.layout
    slots.wait_for_turn(first)
    slots.fill_and_flush(0)
    slots.wait_for_window(first)
    arguments = tree.rebuild(skeleton, slots.inputs(0, layout.inputs))
    activities = {ProfilerActivity.CPU}
    config = ProfilerConfig(ProfilerState.KINETO, False, False, False, False, False, _in_all_threads())
    own_calls, others = OwnCalls(), _OtherThreads()
    idle_us = _idle_us()
    _prepare_profiler(config, activities)
    with torch.no_grad():
        _enable_profiler(config, activities)
        try:
            others.begin()
            _setprofile(own_calls)
            began_ns = _perf_counter_ns()
            result = model(*arguments)
            total_us = (_perf_counter_ns() - began_ns) / 1e3
        finally:
            _setprofile(None)
            others.end()
            events = _events(_disable_profiler())
    if layout.fault_of(result, slots, 0) is None:  # afterwards: the profile would count the asking itself
        outputs.take(result, slots.outbox(0, layout.outputs), slots.stream)
    slots.signal_end(first + 1)
    times_us = own_times_us(map(Span.of, events), own_calls.name, extensions.opened_operators)
    return {
        "own_us": times_us.pop(own_calls.name, 0.0), "operators": _operators_of(times_us), "total_us": total_us,
        "others_us": others.spent_us, "others_began": others.began or own_calls.began,
        "called_back": own_calls.called_back, "idle_us": idle_us,
        "addresses": sorted({*address_use.asked_for, *address_use.code_from_elsewhere()}),
    }


def _in_all_threads() -> Any:
    """Settings by which operators are recorded in every thread of the process, native ones and those there before too."""
    try:
        return _ExperimentalConfig(profile_all_threads=True)
    except TypeError:  # a PyTorch that records the thread alone that begins to
        return _ExperimentalConfig()


def _idle_us() -> float:
    """How long the call of a model that does nothing takes, as cold and as closely watched as the one that follows."""
    idle = _Idle()
    _setprofile(OwnCalls())
    try:
        began_ns = _perf_counter_ns()
        idle(None)
        return (_perf_counter_ns() - began_ns) / 1e3
    finally:
        _setprofile(None)


class OwnCalls:
    """A profile function for the interpreter that marks calls into the candidate's extensions for the profiler: on a CPU
    nothing else says when they ran. Which functions are theirs is noted by `extensions` as they are opened; what of that
    time PyTorch's operators took is for `own_times_us` to take off.

    The mark's name is new each time, so that none of the candidate's own marks has it. `began` is whether a thread was
    started, of which Python's own hooks hear from 3.12 on; `called_back` whether Python ran inside such a call.
    """

    def __init__(self) -> None:
        self.name, self.began, self.called_back = f"own {_urandom(8).hex()}", False, False
        self._depth, self._mark = 0, None

    def __call__(self, frame: Any, event: str, function: Any) -> None:
        self.began |= function is _start_new_thread
        self.called_back |= event == "call" and self._depth > 0
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
        clocks_ns = {}
        for ident in set(_current_frames()) - {_get_ident()}:
            with suppress(OSError):  # it has just ended
                clocks_ns[ident] = _clock_gettime_ns(_clock_of(ident))
        return clocks_ns


class Span(NamedTuple):
    """When an operator, or a mark of ours or the candidate's, ran, and in which thread of the host it began."""

    start_ns: int
    duration_ns: int
    name: str
    thread: int

    @classmethod
    def of(cls, event: Any) -> Span:
        return cls(_start_ns(event), _duration_ns(event), _name(event)[:_LONGEST_NAME], _start_thread_id(event))


def own_times_us(spans: Iterable[Span], mark: str = "", marked: Collection[str] = ()) -> dict[str, float]:
    """Time in µs by name: each moment is its thread's innermost span's, or `mark`'s right around one of `marked`."""
    times: dict[str, float] = {}
    around: dict[int, list[tuple[int, str]]] = {}
    for span in sorted(spans, key=lambda span: (span.start_ns, -span.duration_ns)):
        open_here = around.setdefault(span.thread, [])
        while open_here and open_here[-1][0] <= span.start_ns:
            open_here.pop()
        around_it = open_here[-1][1] if open_here else None
        name = mark if around_it == mark and span.name in marked else span.name
        if around_it is not None:
            times[around_it] -= span.duration_ns / 1e3
        times[name] = times.get(name, 0.0) + span.duration_ns / 1e3
        open_here.append((span.start_ns + span.duration_ns, name))
    return {name: max(0.0, time_us) for name, time_us in times.items()}


def _operators_of(times_us: dict[str, float]) -> list[dict[str, Any]]:
    """The names that took longest, of those that are an operator's."""
    operators = {name: time_us for name, time_us in times_us.items() if "::" in name}
    longest = sorted(operators.items(), key=lambda item: -item[1])[:_MOST_NAMES]
    return [{"name": name, "us": time_us} for name, time_us in longest]
