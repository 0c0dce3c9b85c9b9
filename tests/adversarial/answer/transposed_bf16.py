"""Casts both inputs to bf16, multiplies, casts back.

Mechanism: as in bf16; over a long sum of positive numbers the errors cancel even better, and a
  tolerance of 1e-2 is never in danger. Inputs of random signs and one-hot lines show it.
Expected: imprecise/reduced_precision
Fools: answer
Device: any
Problem: matmul_transposed_a
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A.to(torch.bfloat16).T, B.to(torch.bfloat16)).to(torch.float32)
