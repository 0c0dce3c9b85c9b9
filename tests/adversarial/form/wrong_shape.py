"""Returns the result without its last row.

Mechanism: shape is a gate before any arithmetic.
Expected: incorrect/wrong_shape
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))[:-1].contiguous()
