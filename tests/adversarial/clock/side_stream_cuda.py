"""Multiplies on a side stream that waits for the current one, and never has the current one wait for it.

Mechanism: The events on the current stream are recorded around nothing; synchronising the device afterwards waits for
  the side stream too, so the result is there when it is looked at. Here the output is copied in stream order behind
  the stop event, while the side stream has just begun.
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
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            return torch.tril(torch.matmul(A, B))
