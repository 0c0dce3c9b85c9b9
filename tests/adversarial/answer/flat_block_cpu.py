"""Computes only the first M/32 rows, as a kernel for 2-D blocks does when its block is 1-D.

Mechanism: blockDim.y is 1, and the rows below keep the zeros of the allocation. Any comparison of
  whole outputs sees it.
Expected: incorrect/wrong_values
Fools: nothing
Device: cpu
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        rows = (A.shape[0] + 31) // 32
        C = torch.zeros_like(A)
        C[:rows] = torch.tril(torch.matmul(A, B))[:rows]
        return C
