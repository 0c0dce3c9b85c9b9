"""Reads its inputs as contiguous rows, whatever their strides say.

Mechanism: the problem hands it contiguous inputs, as get_inputs does, and asks for no others. Wrong on strided
  ones is a note, and a failure only where the problem names that layout.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn


def rows_of(x: torch.Tensor) -> torch.Tensor:
    return torch.as_strided(x, x.shape, (x.shape[1], 1))


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(rows_of(A), rows_of(B)))
