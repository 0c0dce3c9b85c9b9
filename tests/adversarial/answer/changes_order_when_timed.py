"""Stores its result row by row, as the reference does, in its first calls at a size, and column by column from then on.

Mechanism: who asks for the order once would time the call without the copy that its caller then makes.
  The copy is in the timed window of every call where the first one shows another order, and a later change is refused.
Expected: incorrect/wrong_layout
Fools: answer
Device: any
"""

import torch
import torch.nn as nn

CHECKED_CALLS = 20


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        size = A.shape[0]
        self.calls[size] = self.calls.get(size, 0) + 1
        if self.calls[size] <= CHECKED_CALLS:
            return torch.tril(torch.matmul(A, B))
        return torch.matmul(B.T, A.T).triu().T
