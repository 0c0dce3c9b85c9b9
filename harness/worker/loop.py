"""The loop that makes a number of launches, all alike, in the order that keeps their times honest.

Per launch: wait for the turn → fill the slot, flush the cache → wait for the window → start → `forward` → stop → copy
the output out → overwrite what was returned. On a GPU the whole loop only queues; nothing runs before the judge lets
the first turn go, and no launch's inputs can be read before its own.

Where a first result, which is never timed, lies in another order of dimensions than the reference's, every later call is
`forward` and the copy to that order, one like the other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from harness.protocol import passes, tree
from harness.protocol.layout import TensorSpec
from harness.worker import outputs
from harness.worker.launch_slots import CpuSlots, CudaSlots
from harness.worker.model import describe

_perf_counter_ns = time.perf_counter_ns


class Layout:
    """How inputs and outputs lie in their regions, and the structure that `forward` must return."""

    def __init__(self, command: dict[str, Any]) -> None:
        self.inputs: Sequence[TensorSpec] = [TensorSpec.from_json(body) for body in command["inputs"]]
        self.outputs: Sequence[TensorSpec] = [TensorSpec.from_json(body) for body in command["outputs"]]
        self.strides: Sequence[Sequence[int] | None] = command["strides"]
        self.shape = command["shape"]
        self.is_tight = command.get("tight", False)

    def fault_of(self, result: Any, slots: CudaSlots | CpuSlots, index: int) -> dict[str, Any] | None:
        """What is wrong with the form of what launch `index` returned."""
        return outputs.fault_of(result, self.shape, self.outputs, self.strides, slots.device, slots.slot_range(index))

    def in_order(self, result: Any) -> Any:
        """`result` with its outputs copied to the reference's order, where they lie in another."""
        return outputs.in_order(result, self.outputs, self.strides)


class Launcher:
    """Makes launches of one model in the slots of one device."""

    def __init__(self, slots: CudaSlots | CpuSlots, model: torch.nn.Module) -> None:
        self._slots, self._model = slots, model
        self.layout: Layout | None = None
        self.reorders = False  # whether what forward returns is copied to the reference's order within the window
        self._forward_laps: list[Any] = []

    def queue(
        self, first: int, skeletons: list[Any], *, synchronised: bool = False
    ) -> tuple[list[dict[str, Any]], list[Any], float]:
        """Queue one launch per skeleton; returns (reports, laps, host µs of the last call with its launch, which has a
        whole call for a queue of one alone, where the device is waited for before and after it).

        With `synchronised` the device is waited for within each call, as a model may do by itself. A forward that
        raises ends the queue there: its report holds the exception.
        """
        slots, reports, laps, host_us = self._slots, [], [], 0.0
        halves = self._forward_laps = []
        mark = None
        passes.notice_backward(self._model, lambda: halves.append(slots.stopwatch.stop(mark)))
        alone = len(skeletons) == 1
        slots.before_queue()
        with torch.no_grad():
            for index, skeleton in enumerate(skeletons):
                slots.wait_for_turn(first + index)
                slots.fill_and_flush(index)
                arguments = tree.rebuild(skeleton, slots.inputs(index, self.layout.inputs))
                if alone:
                    slots.plant_guard(self.layout.outputs)
                    slots.synchronize()
                slots.wait_for_window(first + index)
                mark = slots.stopwatch.start()
                began_ns = _perf_counter_ns()
                try:
                    returned = self._model(*arguments)
                    result = self._in_order(returned) if self.reorders else returned
                    if synchronised:
                        slots.synchronize()
                except Exception as error:
                    slots.restore_stream()
                    reports.append({"raised": describe(error, getattr(self._model, "forward", None))})
                    break
                launched_us = (_perf_counter_ns() - began_ns) / 1e3
                slots.restore_stream()
                laps.append(slots.stopwatch.stop(mark))
                slots.close_window()
                if alone:
                    slots.synchronize()
                host_us = (_perf_counter_ns() - began_ns) / 1e3
                reports.append({"host_us": launched_us, **self._take(index, returned, result, alone)})
                if self.layout.is_tight:  # the next call has its memory
                    returned = result = None
        slots.signal_end(first + len(skeletons))
        return reports, laps, host_us

    def finish(self, laps: list[Any]) -> tuple[list[float], list[float]]:
        """Wait for the device; the laps' times in µs, and of their forward passes where each had a backward one."""
        self._slots.synchronize()
        read = self._slots.stopwatch.microseconds
        halves = self._forward_laps if len(self._forward_laps) == len(laps) else []
        return [read(lap) for lap in laps], [read(lap) for lap in halves]

    def _in_order(self, returned: Any) -> Any:
        self._slots.restore_stream()  # forward may have left another as the current one, which nobody waits for
        return self.layout.in_order(returned)

    def _take(self, index: int, returned: Any, result: Any, alone: bool) -> dict[str, Any]:
        """The report on what forward `returned`, and on `result`, which is that in order where it had to be copied."""
        slots, layout = self._slots, self.layout
        fault = layout.fault_of(returned, slots, index)
        if fault is not None:
            return {"fault": fault}
        beyond = slots.guard_broken(result) if alone else None
        skeleton, tensors = tree.flatten(result)
        outputs.take_tensors(tensors, slots.outbox(index, layout.outputs), slots.stream)
        taken: dict[str, Any] = {"values": tree.values_of(skeleton)}
        if result is not returned:
            outputs.overwrite(tree.flatten(returned)[1], slots.stream)
        elif not outputs.lie_in_order(tensors, layout.strides):
            self.reorders = taken["reordered"] = True
        return taken if beyond is None else {**taken, "beyond": beyond}
