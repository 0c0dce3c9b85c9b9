"""Returns float64 where the reference returns float32.

Mechanism: the dtype is a gate before any arithmetic.
Expected: incorrect/wrong_dtype
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A.double(), B.double()))
