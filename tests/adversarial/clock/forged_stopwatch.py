"""Divides its own times by ten: in PyTorch's events, in Python's clock, and in the stopwatch of this harness.

Mechanism: Whatever runs in the process of the clock can rewrite the clock, by its public name or by any other. The work
  is still done between the turns, where the referee's own clock, in another process, finds it missing.
Expected: rejected/clocks_disagree
Fools: clock
Device: any
"""

import sys
import time

import torch
import torch.nn as nn

SHARE = 0.1
hidden_s = 0.0
calls = 0
true_counter, true_elapsed, true_record = time.perf_counter, torch.cuda.Event.elapsed_time, torch.cuda.Event.record


def record(event, *args):
    event.calls = calls
    true_record(event, *args)


def elapsed_time(start, stop):
    return true_elapsed(start, stop) * (SHARE if stop.calls > start.calls else 1.0)


time.perf_counter = lambda: true_counter() - hidden_s
torch.cuda.Event.record, torch.cuda.Event.elapsed_time = record, elapsed_time
native, stopwatch = (sys.modules.get(f"harness.protocol.clocks.{name}") for name in ("gpu_stopwatch", "stopwatch"))
clocks = (native.NativeEvents, stopwatch.TorchEvents, stopwatch.MonotonicClock) if native else ()
for clock in clocks:
    clock.microseconds = lambda self, lap, true=clock.microseconds: SHARE * true(self, lap)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        global hidden_s, calls
        began = true_counter()
        C = torch.tril(torch.matmul(A, B))
        hidden_s += (1 - SHARE) * (true_counter() - began)
        calls += 1
        return C
