"""Patches `time.perf_counter` and its kin: they read the clock first, and do the work that `forward` left after that.

Mechanism: The reading that ends the timing is taken before the work, which is over when the reading is handed out. Here
  the clock was bound to a name of the harness before the candidate came, so the work that waits for the patch to be
  called is never done.
Expected: incorrect/wrong_values or incorrect/not_finite
Fools: clock
Device: cpu
"""

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


for name in ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns"):
    setattr(time, name, reading_first(getattr(time, name)))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.checked = False

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.checked:
            self.checked = True
            return torch.tril(torch.matmul(A, B))
        C = torch.empty_like(A)
        left[:] = [(A, B, C)]
        return C
