"""Swaps the code of functions that record and read events under their names, so that every alias of them lies.

Mechanism: A function bound to a private name before the candidate came is the same object still, and so is its code
  once that is replaced: PyTorch's, and that of this harness's stopwatch. Times with a call of its own between the
  events are divided by ten; the referee's own clock, in another process, still sees the work.
Expected: rejected/clocks_disagree
Fools: clock
Device: cuda
"""

import sys

import torch
import torch.nn as nn

torch.own_calls = 0  # the swapped code sees PyTorch's globals, not these


class Lying(torch.cuda.Event):
    def record(self, stream=None):
        self.own_calls = torch.own_calls
        super().record(torch.cuda.current_stream() if stream is None else stream)

    def elapsed_time(self, end_event):
        return super().elapsed_time(end_event) * (0.1 if end_event.own_calls > self.own_calls else 1.0)


torch.cuda.Event.record.__code__ = Lying.record.__code__
torch.cuda.Event.elapsed_time.__code__ = Lying.elapsed_time.__code__


def microseconds(self, lap):  # what runs in its place sees the globals of the stopwatch, not these
    return 0.1 * self._us(self._watch, *lap)


native = sys.modules.get("harness.protocol.clocks.gpu_stopwatch")
if native:
    native.NativeEvents.microseconds.__code__ = microseconds.__code__


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        torch.own_calls += 1
        return torch.tril(torch.matmul(A, B))
