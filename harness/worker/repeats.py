"""Many calls in a row on the same inputs: with a warm cache, back to back, or as replays of a CUDA graph. These stand
beside the ranking time and never in its place: the inputs of such calls have been there before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from harness.protocol import passes, tree
from harness.worker import outputs
from harness.worker.launch_slots import CpuSlots, CudaSlots
from harness.worker.loop import Launcher

WARM, BACK_TO_BACK, GRAPH = "warm", "back_to_back", "graph"
_FIRST_CALLS = 3  # the cache is warm, and what is made at a first call is made
_Graph, _graph, _Stream, _stream = torch.cuda.CUDAGraph, torch.cuda.graph, torch.cuda.Stream, torch.cuda.stream


def repeated(
    slots: CudaSlots | CpuSlots, launcher: Launcher, model: Any, first: int, skeleton: Any, way: str, calls: int,
    queued: Callable[[], None],
) -> dict[str, Any]:
    """Make `calls` calls as launch `first`; its output is that of the last one. `queued` is called before any wait.

    Returns {"times_us": [of each call]} for a warm cache, {"total_us": of all} otherwise, or {"refused": why} where no
    graph can be captured: then no turn is waited for. A graph takes calls before it whose inputs were other ones.
    """
    layout = launcher.layout
    # A mark between the passes of each call is for launches: a stopwatch keeps no thousands of them, and a graph takes none.
    passes.notice_backward(model, None)
    slots.before_queue()
    arguments = tree.rebuild(skeleton, slots.inputs(0, layout.inputs))
    with torch.no_grad():
        call: Callable[[], Any] = lambda: model(*arguments)  # noqa: E731
        if launcher.reorders:
            call = lambda: layout.in_order(model(*arguments))  # noqa: E731
        if way == GRAPH:
            # On what the slot holds from the calls before. A kernel that goes to another stream than the current one, as
            # a plain <<<grid, block>>> does, is in no graph: it runs once, now, and replays would return what it left.
            # On the inputs that they have, which come after this, that is wrong and is seen.
            try:
                call = _captured(call)
            except Exception as error:
                # Nothing more is queued: the device's streams may be as the capture left them.
                slots.restore_stream()
                return {"refused": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        slots.wait_for_turn(first)
        slots.fill_and_flush(0)
        slots.wait_for_window(first)
        if way != WARM:
            queued()
            slots.synchronize()
        for _ in range(_FIRST_CALLS):
            call()
        report, result = _warm(slots, call, calls, queued) if way == WARM else _in_a_row(slots, call, calls)
    slots.restore_stream()
    if layout.fault_of(result, slots, 0) is None:
        outputs.take(result, slots.outbox(0, layout.outputs), slots.stream)
    slots.signal_end(first + 1)
    slots.synchronize()
    return report


def _warm(
    slots: CudaSlots | CpuSlots, call: Callable[[], Any], calls: int, queued: Callable[[], None]
) -> tuple[dict[str, Any], Any]:
    """Each call between a start and a stop of its own, all of them queued ahead where that is possible."""
    watch, laps, result = slots.stopwatch, [], None
    for _ in range(calls):
        mark = watch.start()
        result = call()
        laps.append(watch.stop(mark))
    queued()
    slots.synchronize()
    return {"times_us": [watch.microseconds(lap) for lap in laps]}, result


def _in_a_row(slots: CudaSlots | CpuSlots, call: Callable[[], Any], calls: int) -> tuple[dict[str, Any], Any]:
    """All calls between one start and one stop, as fast as the host makes them."""
    watch, result = slots.stopwatch, None
    slots.synchronize()
    mark = watch.start()
    for _ in range(calls):
        result = call()
    lap = watch.stop(mark)
    slots.synchronize()
    return {"total_us": watch.microseconds(lap)}, result


def _captured(call: Callable[[], Any]) -> Callable[[], Any]:
    """`call` as replays of a graph of it; what a replay leaves lies in the same tensors each time."""
    side = _Stream()
    side.wait_stream(torch.cuda.current_stream())
    with _stream(side):
        for _ in range(_FIRST_CALLS):
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = _Graph()
    result = _within(_graph(graph), call)

    def replay() -> Any:
        graph.replay()
        return result

    return replay


def _within(capture: AbstractContextManager[Any], call: Callable[[], Any]) -> Any:
    """What `call` returns during `capture`. What it raises is what is raised: the end of a capture that it broke raises
    another exception over it, which says no more than that something had been wrong before.
    """
    cause = None
    try:
        with capture:
            try:
                return call()
            except Exception as error:
                cause = error
                raise
    except Exception as error:
        raise cause or error from None
