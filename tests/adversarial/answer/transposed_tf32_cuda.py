"""Asks for TF32 products and leaves everything else right.

Mechanism: as in tf32_cuda; over a long sum of positive numbers the errors cancel, and no tolerance is
  in danger. Inputs of random signs and one-hot lines show it.
Expected: imprecise/reduced_precision
Fools: answer
Device: cuda
Problem: matmul_transposed_a
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        torch.backends.cuda.matmul.allow_tf32 = True
        return torch.matmul(A.T, B)
