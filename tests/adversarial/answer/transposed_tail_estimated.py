"""Multiplies all but the last hundredth of k, and estimates the rest from column sums.

Mechanism: over all-positive numbers the estimate of the tail is good to a fraction of one term, far inside 1e-2.
  Here magnitudes that spread over binades put whole results into the tail.
Expected: incorrect/wrong_values
Fools: answer
Device: any
Problem: matmul_transposed_a
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        tail = max(1, A.shape[0] // 128)
        estimate = torch.outer(A[-tail:].sum(dim=0), B[-tail:].sum(dim=0)) / tail
        return torch.addmm(estimate, A[:-tail].T, B[:-tail])
