"""One launch under PyTorch's profiler: which kernels, or on a CPU which operators, ran inside `forward`.

Never a timed launch: the profiler slows what it watches. What is listed here is the player's word; whose kernels
they were is decided by `provenance` on the referee's side, which has the launch's output checked like any other.

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

from harness.player import addresses, extensions, listing, outputs
from harness.player.launches import Launcher
from harness.player.other_threads import OtherThreads
from harness.player.own_calls import OwnCalls
from harness.player.stages import CpuStage, CudaStage
from harness.wire import tree

# Starting CUPTI may take seconds, in which a GPU's clock falls; this much work brings it back up. Where it took less than
# that the clock has not fallen yet; a launch that is asked for again, since the first was unlike the timed ones, has it
# all the same.
_WARM_S = 0.05
_WARM_BATCH = 20
_profiled_before = False
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


def profiled_launch(stage: CudaStage | CpuStage, launcher: Launcher, model: Any, first: int, skeleton: Any) -> dict:
    """Make launch `first` under the profiler.

    Returns {"names": [name], "spans": [[index, start µs, µs]], "operators": [{name, us}], "own_us", "total_us",
    "others_us", "others_began", "called_back", "idle_us", "addresses", "reordered"}: when each kernel ran, up to when the form of the
    result is known; the operators with their own time, and the time inside functions and operators of the candidate's extensions without that
    in operators which they called; on a CPU also what other threads of Python's had of a core meanwhile, whether threads or
    processes were begun, whether an extension had Python run something, and how long the call of a model that does nothing
    took, watched in the same way, and which functions Python was asked the address of since the candidate came; and whether
    on a GPU the outputs were copied to the reference's order at the end.
    """
    layout = launcher.layout
    stage.wait_for_turn(first)
    stage.fill(0)
    stage.wait_for_window(first)
    stage.synchronize()
    arguments = tree.rebuild(skeleton, stage.inputs(0, layout.inputs))
    on_gpu = stage.stream is not None
    activities = {ProfilerActivity.CPU, ProfilerActivity.CUDA} if on_gpu else {ProfilerActivity.CPU}
    config = ProfilerConfig(ProfilerState.KINETO, False, False, False, False, False, _ExperimentalConfig())
    own_calls, others = OwnCalls(), OtherThreads()
    idle_us = 0.0 if on_gpu else _idle_us()
    began_ns = _perf_counter_ns()
    _prepare_profiler(config, activities)
    if on_gpu:
        _warm_up(stage, _warm_up_s((_perf_counter_ns() - began_ns) / 1e9))
    with torch.no_grad():
        _enable_profiler(config, activities)
        try:
            if not on_gpu:
                others.begin()
                _setprofile(own_calls)
            began_ns = _perf_counter_ns()
            returned = result = model(*arguments)
            if on_gpu and launcher.reorders:
                stage.restore_stream()
                result = layout.in_order(returned)
            stage.synchronize()
            total_us = (_perf_counter_ns() - began_ns) / 1e3
            if on_gpu:
                # A result with methods of its own may be computed when it is asked for its form: that is listed as well.
                fault = layout.fault_of(returned, stage, 0)
                stage.synchronize()
        finally:
            _setprofile(None)
            others.end()
            events = _events(_disable_profiler())
    stage.restore_stream()
    if not on_gpu:  # whose profile would count the asking itself
        fault = layout.fault_of(returned, stage, 0)
    if fault is None:
        outputs.take(result, stage.outbox(0, layout.outputs), stage.stream)
    stage.signal_end(first + 1)
    stage.synchronize()
    times_us = listing.own_times_us(listing.calls_of(events), own_calls.name, extensions.opened_operators)
    return {
        **listing.when(listing.kernels_of(events)),
        "own_us": times_us.pop(own_calls.name, 0.0),
        "operators": listing.operators_of(times_us),
        "total_us": total_us, "others_us": others.spent_us, "others_began": others.began or own_calls.began,
        "called_back": own_calls.called_back, "idle_us": idle_us, "addresses": sorted(addresses.asked_for),
        "reordered": launcher.reorders,
    }


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


def _warm_up_s(preparing_s: float) -> float:
    """For how long to work before a launch whose profiler took `preparing_s` to get ready."""
    global _profiled_before
    again, _profiled_before = _profiled_before, True
    return _WARM_S if again or preparing_s > _WARM_S else 0.0


def _warm_up(stage: CudaStage, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for _ in range(_WARM_BATCH):
            stage.fill(0)
        stage.synchronize()
