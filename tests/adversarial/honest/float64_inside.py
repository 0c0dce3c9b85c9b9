"""Multiplies in float64 and rounds once at the end.

Mechanism: more exact than the baseline is no fault: the measure is the truth, not eager's bits.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A.double(), B.double())).float()
