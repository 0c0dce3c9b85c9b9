"""Stores its result column by column, as libraries that come from Fortran do.

Mechanism: values count and not where they lie: the output is dense, and its copy to the reference's order is timed with it.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(B.T, A.T).triu().T
