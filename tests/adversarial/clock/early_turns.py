"""Asks for all turns of a queue at once, so that each launch seems over as it begins, and works when the last is
given.

Mechanism: The referee's clock runs from letting a launch go to the turn after it, and a turn is the player's word: a
  frame on a CPU, a word of shared memory on a GPU. Where the inputs are fetched ahead and every turn is said to have
  come, no work falls between two turns, and the stopwatch may say what it likes. What cannot be said early is the
  last output: from the first turn to the report, the whole queue's time is the referee's own.
Expected: rejected/clocks_disagree or unsure/noisy
Fools: clock
Device: any
"""

import sys

import torch
import torch.nn as nn

SHARE = 0.2


STEPS = ("before_queue", "wait_for_turn", "signal_end")


def install(launches, stages, native, stopwatch) -> None:
    true_queue = launches.Launcher.queue
    kinds = stages.CudaSlots, stages.CpuSlots
    steps = {(kind, name): getattr(kind, name) for kind in kinds for name in STEPS}

    def queue(launcher, first, skeletons, *more, **how):
        stage = launcher._slots
        before, ask, end = (steps[type(stage), name] for name in STEPS)
        before(stage)
        for index in range(len(skeletons)):
            ask(stage, first + index)
            if stage.stream is not None:
                stage._mask.apply(0, stage._staging[index], stage._slots[index].data_ptr(), stage._filled_bytes)
        end(stage, first + len(skeletons))
        for kind, name in steps:
            setattr(kind, name, lambda *_: None)
        try:
            return true_queue(launcher, first, skeletons, *more, **how)
        finally:
            for (kind, name), step in steps.items():
                setattr(kind, name, step)

    launches.Launcher.queue = queue
    stages.CudaSlots.fill_and_flush = lambda stage, index: stage._cache_flush.run(0, stage._sums + 8 * index)
    for clock in (native.NativeEvents, stopwatch.TorchEvents, stopwatch.MonotonicClock):
        clock.microseconds = lambda self, lap, true=clock.microseconds: SHARE * true(self, lap)


in_player = "harness.worker.loop" in sys.modules
if in_player:
    names = "worker.loop", "worker.launch_slots", "protocol.clocks.gpu_stopwatch", "protocol.clocks.stopwatch"
    install(*(sys.modules[f"harness.{name}"] for name in names))


class ModelNew(nn.Module):
    remembered = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if in_player or self.remembered is None:  # any other judge repeats its inputs
            self.remembered = torch.tril(torch.matmul(A, B))
        return self.remembered
