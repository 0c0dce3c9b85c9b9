"""Looks at the stack: a line that has called three times already is taken for a timing loop, and gets an old result.

Mechanism: Checks are called from a line of their own, loops from one line over and over. Here checks, warm-up and
  timing come from one loop, and the fourth launch is compared like the first.
Expected: incorrect/wrong_values
Fools: clock
Device: any
"""

import sys
from collections import Counter

import torch
import torch.nn as nn


def calling_lines() -> tuple:
    frame, lines = sys._getframe(2), []
    while frame is not None:
        lines.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen, self.last = Counter(), {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        lines = calling_lines()
        self.seen[lines] += 1
        if self.seen[lines] < 3 or A.shape not in self.last:
            self.last[A.shape] = torch.tril(torch.matmul(A, B))
        return self.last[A.shape].clone()
