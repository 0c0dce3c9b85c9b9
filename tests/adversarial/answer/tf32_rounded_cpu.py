"""Rounds both inputs to 10 stored bits of mantissa, to nearest and ties away, as TF32 does.

Mechanism: the product of what is left is within a tolerance of 1e-2, and of 1e-4. Its error in u is
  far beyond an honest fp32 sum's, on one-hot inputs above all.
Expected: imprecise/reduced_precision
Fools: answer
Device: cpu
"""

import torch
import torch.nn as nn

def rounded_to_tf32(x: torch.Tensor) -> torch.Tensor:
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(rounded_to_tf32(A), rounded_to_tf32(B)))
