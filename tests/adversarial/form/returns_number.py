"""Returns a Python number.

Mechanism: the structure of what is returned is a gate before any arithmetic.
Expected: incorrect/wrong_type
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return float(torch.tril(torch.matmul(A, B)).sum())
