"""Computes in the first four calls (one that is checked, three that warm up) and replays the last result after them.

Mechanism: A judge that checks first and times afterwards times a copy. Here nothing tells a check from a timing, every
  output of every launch is compared, and the fifth has other inputs.
Expected: incorrect/wrong_values
Fools: clock
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.last = 0, {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls <= 4 or A.shape not in self.last:
            self.last[A.shape] = torch.tril(torch.matmul(A, B))
        return self.last[A.shape].clone()
