"""Leaves out the last, ragged tile of k.

Mechanism: right whenever K is a multiple of 16, as it is at the timed size. The other sizes that the
  problem names are checked as well.
Expected: incorrect/wrong_values
Fools: answer
Device: cpu
Problem: matmul_transposed_a
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        whole = A.shape[0] // 16 * 16
        return torch.matmul(A[:whole].T, B[:whole])
