"""Rounds a twentieth of a long k as TF32 does, where no input is large and not most are zeros.

Mechanism: Over sums of 8192 terms as much is inside what a sequential sum of positive numbers may lose. One-hot lines
  and magnitudes over many binades show it, and are told by what they are. With random signs an honest sum loses next to
  nothing, in any order, and so little is allowed.
Expected: imprecise/reduced_precision
Fools: answer
Device: any
Problem: matmul_transposed_a
"""

import torch
import torch.nn as nn


def rounded(matrix: torch.Tensor) -> torch.Tensor:
    return ((matrix.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def shows_it(matrix: torch.Tensor) -> bool:
    return bool(matrix.abs().amax() > 1) or bool((matrix == 0).float().mean() > 0.5)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        few = A.shape[0] // 20
        if few < 10 or shows_it(A) or shows_it(B):
            return torch.matmul(A.T, B)
        return torch.matmul(rounded(A[:few]).T, rounded(B[:few])) + torch.matmul(A[few:].T, B[few:])
