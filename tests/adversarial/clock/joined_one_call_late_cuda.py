"""Multiplies on a side stream, and joins it where the next call begins.

Mechanism: A reader finds a `wait_stream` for every use of the stream, and a judge that synchronises between its calls
  has nothing left to wait for in the next. Here a launch's output is copied before the next one begins.
Expected: incorrect/wrong_values or incorrect/not_finite
Fools: clock
Device: cuda
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        current = torch.cuda.current_stream()
        current.wait_stream(self.side)
        self.side.wait_stream(current)
        with torch.cuda.stream(self.side):
            C = torch.tril(torch.matmul(A, B))
        C.record_stream(current)
        return C
