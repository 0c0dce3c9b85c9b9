"""Forgets to return its result.

Mechanism: the structure of what is returned is a gate before any arithmetic.
Expected: incorrect/wrong_type
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.tril(torch.matmul(A, B))
        del C
        return None
