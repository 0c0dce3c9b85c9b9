"""Sums over k = 0..j, that is min(i, j), where it should sum over k = j..i.

Mechanism: triu keeps the rows k <= j of column j of B, the k that the mistaken loop visits. Any
  comparison sees it.
Expected: incorrect/wrong_values
Fools: nothing
Device: cpu
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        # triu keeps the rows k <= j of column j of B: the k that the mistaken loop visits.
        return torch.tril(torch.matmul(A, torch.triu(B)))
