"""One launch under PyTorch's profiler: which kernels, or on a CPU which operators, ran inside `forward`.

Never a timed launch: the profiler slows what it watches. What is listed here is the player's word; whose kernels
they were is decided by `provenance` on the referee's side.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from harness.player import outputs
from harness.player.launches import Launcher
from harness.player.stages import CpuStage, CudaStage
from harness.wire import tree

_MOST_NAMES = 200


def profiled_launch(stage: CudaStage | CpuStage, launcher: Launcher, model: Any, first: int, skeleton: Any) -> dict:
    """Make launch `first` under the profiler; returns {"kernels": [{name, us}], "operators": [...], "total_us"}."""
    layout = launcher.layout
    stage.wait_for_turn(first)
    stage.fill(0)
    stage.synchronize()
    arguments = tree.rebuild(skeleton, stage.inputs(0, layout.inputs))
    on_gpu = stage.stream is not None
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_gpu else [])
    with torch.no_grad(), profile(activities=activities) as profiler:
        began = time.perf_counter_ns()
        result = model(*arguments)
        stage.synchronize()
        total_us = (time.perf_counter_ns() - began) / 1e3
    stage.restore_stream()
    if layout.fault_of(result, stage, 0) is None:
        outputs.take(result, stage.outbox(0, layout.outputs), stage.stream)
    stage.signal_end(first + 1)
    stage.synchronize()
    kernels, operators = {}, {}
    for event in profiler.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            kernels[event.name] = kernels.get(event.name, 0.0) + event.device_time
        elif event.name.startswith("aten::"):
            operators[event.name] = operators.get(event.name, 0.0) + event.self_cpu_time_total
    return {"kernels": _listed(kernels), "operators": _listed(operators), "total_us": total_us}


def _listed(times_us: dict[str, float]) -> list[dict[str, Any]]:
    longest = sorted(times_us.items(), key=lambda item: -item[1])[:_MOST_NAMES]
    return [{"name": name[:2000], "us": time_us} for name, time_us in longest]
