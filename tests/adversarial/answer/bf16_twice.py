"""Splits each input into two bf16 numbers and adds up three of the four products: sixteen bits, sold as fp32.

Mechanism: its errors are a hundred times smaller than bf16's, and no usual tolerance sees them. Here one-hot and
  identity inputs show each product by itself, 128 u off where 8 u are allowed.
Expected: imprecise/reduced_precision
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    high = x.bfloat16()
    return high, (x - high.float()).bfloat16()


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """bf16 times bf16 with an fp32 sum: on tensor cores, and on a CPU with the same operands in fp32."""
    if a.is_cuda:
        return torch.mm(a, b, out_dtype=torch.float32)
    return torch.mm(a.float(), b.float())


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        (a1, a2), (b1, b2) = halves(A), halves(B)
        return torch.tril(product(a1, b1) + product(a1, b2) + product(a2, b1))
