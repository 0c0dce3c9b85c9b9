"""Casts both inputs to bf16, multiplies, casts back.

Mechanism: each result is off by half a per cent or less, which a tolerance of 1e-2 lets through. Here
  an fp32 result may err by a few hundred u, and bf16's error of 100000 u has a name.
Expected: imprecise/reduced_precision
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A.to(torch.bfloat16), B.to(torch.bfloat16)).to(torch.float32))
