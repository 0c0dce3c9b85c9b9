"""Tells the referee that a launch is over as soon as its inputs are there, and does the work after that.

Mechanism: The referee's clock runs from letting a launch go to the turn after it, and a turn is the player's word (on a
  GPU a word in shared memory). Said early, each launch seems over before it began, and the stopwatch may then say what
  it likes. What cannot be said early is the last output: the time of the whole queue is the referee's own.
Expected: rejected/clocks_disagree
Fools: clock
Device: any
"""

import sys

import torch
import torch.nn as nn

SHARE = 0.2


def install(stages, stopwatch, driver, turn_byte) -> None:
    true_wait, true_apply, current = stages.CudaStage.wait_for_turn, stages.Mask.apply, {}

    def wait_for_turn(stage, sequence):  # on a GPU: in stream order behind the unmasking, the next launch's word
        current.update(word=stage._words + turn_byte, next=sequence + 1)
        true_wait(stage, sequence)

    def apply(mask, stream, *args):
        true_apply(mask, stream, *args)
        driver.stream_write(stream, current["word"], current["next"])

    def wait_on_cpu(stage, sequence):
        if sequence != current.get("next"):
            stage._channel.send({"turn": sequence})
        assert stage._channel.receive()["go"] == sequence
        current["next"] = sequence + 1
        stage._channel.send({"turn": sequence + 1})

    stages.CudaStage.wait_for_turn, stages.Mask.apply = wait_for_turn, apply
    stages.CpuStage.wait_for_turn, stages.CpuStage.signal_end = wait_on_cpu, lambda stage, sequence: None
    for clock in (stopwatch.CudaEvents, stopwatch.MonotonicClock):
        clock.microseconds = lambda self, lap, true=clock.microseconds: SHARE * true(self, lap)


if "harness.player.stages" in sys.modules:
    from harness.wire import arena, cuda_driver
    install(sys.modules["harness.player.stages"], sys.modules["harness.clocks.stopwatch"], cuda_driver, arena.TURN_BYTE)


class ModelNew(nn.Module):
    remembered = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if "harness.player.stages" in sys.modules or self.remembered is None:  # any other judge repeats its inputs
            self.remembered = torch.tril(torch.matmul(A, B))
        return self.remembered
