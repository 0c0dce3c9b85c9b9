"""Reports a hundredth of a microsecond, whatever it did.

Mechanism: No GPU moves these bytes in that time, and a time below 0.8 of the floor, the useful bytes and operations at
  the fastest rates there are, is refused before any other clock is asked. A CPU has no floor; there the referee's own
  clock finds the work.
Expected: rejected/below_floor or rejected/clocks_disagree
Fools: clock
Device: any
"""

import sys
import time

import torch
import torch.nn as nn

hidden_s = 0.0
own_calls = 0
true_counter, true_elapsed = time.perf_counter, torch.cuda.Event.elapsed_time


def elapsed_time(start, stop):
    global own_calls
    lie, own_calls = own_calls, 0
    return 1e-5 if lie else true_elapsed(start, stop)


time.perf_counter = lambda: true_counter() - hidden_s
torch.cuda.Event.elapsed_time = elapsed_time
native, stopwatch = (sys.modules.get(f"harness.protocol.clocks.{name}") for name in ("gpu_stopwatch", "stopwatch"))
clocks = (native.NativeEvents, stopwatch.TorchEvents, stopwatch.MonotonicClock) if native else ()
for clock in clocks:
    clock.microseconds = lambda self, lap: 0.01


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        global hidden_s, own_calls
        began = true_counter()
        C = torch.tril(torch.matmul(A, B))
        hidden_s += 0.999999 * (true_counter() - began)
        own_calls += 1
        return C
