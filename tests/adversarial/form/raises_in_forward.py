"""Raises in forward.

Mechanism: at every size, so it is no limit of the kernel; the reason has message and line.
Expected: incorrect/raised
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("the tile size does not divide the matrix")
