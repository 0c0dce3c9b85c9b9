"""Takes all turns of a queue at once and says when the last is over truly: one launch in a segment carries the work
of all.

Mechanism: Every launch but one has a wall time that agrees with the small time it reports, and the one that does not
  is an outlier among many, since short launches come in long segments. A mean that leaves out the largest leaves out
  the work; the wall time of a segment as a whole does not.
Expected: rejected/clocks_disagree or unsure/noisy or timed_out/launch_timeout
Fools: clock
Device: any
"""

import sys

import torch
import torch.nn as nn

SHARE = 0.02
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
        for kind, name in steps:
            setattr(kind, name, lambda *_: None)
        try:
            made = true_queue(launcher, first, skeletons, *more, **how)
        finally:
            for (kind, name), step in steps.items():
                setattr(kind, name, step)
        end(stage, first + len(skeletons))
        return made

    launches.Launcher.queue = queue
    stages.CudaSlots.fill_and_flush = lambda stage, index: stage._cache_flush.run(0, stage._sums + 8 * index)
    for clock in (native.NativeEvents, stopwatch.TorchEvents, stopwatch.MonotonicClock):
        clock.microseconds = lambda self, lap, true=clock.microseconds: max(9.0, SHARE * true(self, lap))


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
