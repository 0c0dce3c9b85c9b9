"""Finds every name that anything in the process has bound to a clock, and replaces each by one that does the work late.

Mechanism: A clock bound to a private name before the candidate came is found in the modules all the same. The reading is
  taken, then the product is computed; here that is before the next turn, and the referee's own clock sees it.
Expected: rejected/clocks_disagree
Fools: clock
Device: cpu
"""

import sys
import time

import torch
import torch.nn as nn

left = []


def reading_first(clock):
    def read():
        now = clock()
        while left:
            A, B, C = left.pop()
            C.copy_(torch.tril(torch.matmul(A, B)))
        return now
    return read


late = {id(clock): reading_first(clock) for clock in (time.perf_counter, time.perf_counter_ns, time.monotonic)}
for module in list(sys.modules.values()):
    for name, value in list(getattr(module, "__dict__", {}).items()):
        if id(value) in late and module is not sys.modules[__name__]:
            setattr(module, name, late[id(value)])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.checked = False

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.checked:
            self.checked = True
            return torch.tril(torch.matmul(A, B))
        C = A + B  # as many bytes as a floor asks for
        left[:] = [(A, B, C)]
        return C
