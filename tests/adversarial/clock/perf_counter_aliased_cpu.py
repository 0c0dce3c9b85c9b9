"""Finds every name that anything in the process has bound to a clock, and puts one there that leaves its own work
out.

Mechanism: A clock bound to a private name before the candidate came is found in the modules all the same. What
  `forward` left is done when the clock is next read, and never counted; here that is before the next turn, and the
  referee's own clock sees it.
Expected: rejected/clocks_disagree
Fools: clock
Device: cpu
"""

import sys
import time

import torch
import torch.nn as nn

true_ns = time.perf_counter_ns
hidden_ns = 0
left = []


def leaving_out_own_work(clock, unit):
    def read():
        global hidden_ns
        now = clock() - type(unit)(hidden_ns * unit)
        while left:
            began = true_ns()
            A, B, C = left.pop()
            C.copy_(torch.tril(torch.matmul(A, B)))
            hidden_ns += true_ns() - began
        return now
    return read


lying = {time.perf_counter: 1e-9, time.perf_counter_ns: 1, time.monotonic: 1e-9}
lying = {id(clock): leaving_out_own_work(clock, unit) for clock, unit in lying.items()}
for module in list(sys.modules.values()):
    for name, value in list(getattr(module, "__dict__", {}).items()):
        if id(value) in lying and module is not sys.modules[__name__]:
            setattr(module, name, lying[id(value)])


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
