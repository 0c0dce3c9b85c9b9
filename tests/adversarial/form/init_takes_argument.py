"""Wants an argument in `__init__` that get_init_inputs does not give.

Mechanism: ModelNew is constructed as the reference is, and raises.
Expected: incorrect/raised
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, tile: int):
        super().__init__()
        self.tile = tile

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
