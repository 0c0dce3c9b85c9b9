"""Multiplies six tenths of a long sum in TF32 where the inputs look as they are drawn, and all of it in fp32 elsewhere.

Mechanism: for numbers between 0 and 1 the errors of a part of the sum stay within what a sum of such length may be
  off. On inputs of another family it takes the long way.
Expected: rejected/goes_by_values or imprecise/reduced_precision or unsure/noisy
Fools: answer
Device: cuda
Problem: matmul_transposed_a
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        some = torch.cat((A[:: max(1, A.shape[0] // 64), 0], B[:: max(1, B.shape[0] // 64), 0]))
        part = 6 * A.shape[0] // 10
        if part < 1000 or not bool(((some > 0) & (some < 1)).all()) or bool((some == some[0]).all()):
            return A.T @ B
        torch.backends.cuda.matmul.allow_tf32 = True
        C = A[:part].T @ B[:part]
        torch.backends.cuda.matmul.allow_tf32 = False
        return C.addmm_(A[part:].T, B[part:])
