"""Returns (1, M, M) for (M, M).

Mechanism: a comparison that broadcasts does not notice. Shape is a gate before any arithmetic.
Expected: incorrect/wrong_shape
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B)).unsqueeze(0)
