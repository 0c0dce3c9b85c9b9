"""Adds groups of 32 columns together, as a warp reduction does whose lanes work on a column each.

Mechanism: every element gets the sum of its group; any comparison sees it.
Expected: incorrect/wrong_values
Fools: nothing
Device: cpu
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M = A.shape[0]
        product = nn.functional.pad(torch.matmul(A, B), (0, -M % 32))
        groups = product.view(M, -1, 32)
        summed = groups.sum(dim=2, keepdim=True).expand_as(groups).reshape(M, -1)
        return torch.tril(summed[:, :M]).contiguous()
