"""One launch on a CPU under PyTorch's profiler: which operators ran inside `forward`. A GPU's launches have the recorder.

Never a timed launch: the profiler slows what it watches. What is listed here is the worker's word; whose work it was
is decided by `attribution` on the judge's side, which has the launch's output checked like any other.

The profiler's functions are taken from the C extension as this module is imported, before any candidate is, so that
patching `torch.profiler` or the classes behind it changes nothing here.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch
from torch._C._autograd import _ProfilerResult
from torch._C._profiler import _ExperimentalConfig
from torch.autograd import (
    ProfilerActivity, ProfilerConfig, ProfilerState, _disable_profiler, _enable_profiler, _prepare_profiler,
)

from harness.protocol import tree
from harness.worker import address_use, extensions, outputs, profiler_events
from harness.worker.loop import Launcher
from harness.worker.other_threads import OtherThreads
from harness.worker.own_calls import OwnCalls
from harness.worker.launch_slots import CpuSlots

_perf_counter_ns = time.perf_counter_ns
_setprofile = sys.setprofile
_events = _ProfilerResult.events


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
    "addresses"}: the operators with their own time, and the time inside functions and operators of the candidate's
    extensions without that in operators which they called; what other threads of Python's had of a core meanwhile, whether
    threads or processes were begun, whether an extension had Python run something, how long the call of a model that does
    nothing took, watched in the same way, and which functions Python was asked the address of since the candidate came, with
    the files whose code has come since from where nothing is installed. Operators count in whatever thread they run.
    """
    layout = launcher.layout
    slots.wait_for_turn(first)
    slots.fill_and_flush(0)
    slots.wait_for_window(first)
    arguments = tree.rebuild(skeleton, slots.inputs(0, layout.inputs))
    activities = {ProfilerActivity.CPU}
    config = ProfilerConfig(ProfilerState.KINETO, False, False, False, False, False, _in_all_threads())
    own_calls, others = OwnCalls(), OtherThreads()
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
    times_us = profiler_events.own_times_us(profiler_events.calls_of(events), own_calls.name, extensions.opened_operators)
    return {
        "own_us": times_us.pop(own_calls.name, 0.0),
        "operators": profiler_events.operators_of(times_us),
        "total_us": total_us, "others_us": others.spent_us, "others_began": others.began or own_calls.began,
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
