"""Computes whole tiles of 32 rows and columns only: the ragged edge of any other size stays zero.

Mechanism: the size that is compared is a power of two, so there is no edge. Here the sizes that the problem names
  are all checked, and 1, 31 and 257 are among them.
Expected: incorrect/wrong_values
Fools: answer
Device: any
"""

import torch
import torch.nn as nn

TILE = 32


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        whole = A.shape[0] // TILE * TILE
        C = torch.zeros_like(A)
        C[:whole, :whole] = torch.tril(torch.matmul(A[:whole, :whole], B[:whole, :whole]))
        return C
