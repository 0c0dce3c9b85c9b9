"""Raises in `__init__`.

Mechanism: a player constructs it, and its row alone pays; the reason has message and line.
Expected: incorrect/raised
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        raise ValueError("no workspace for this model")

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
