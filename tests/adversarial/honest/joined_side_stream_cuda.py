"""Works on a side stream that waits for the current one, and is waited for by it.

Mechanism: the join lies before forward returns, so the stop event stands behind it. What is done between
  the two waits is inside the window; record_stream keeps the memory from being handed on too early.
Expected: ok/
Fools: nothing
Device: cuda
Kind: library
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        current = torch.cuda.current_stream()
        self.side.wait_stream(current)
        with torch.cuda.stream(self.side):
            C = torch.tril(torch.matmul(A, B))
        current.wait_stream(self.side)
        for tensor, stream in ((A, self.side), (B, self.side), (C, current)):
            tensor.record_stream(stream)
        return C
