"""Returns a tensor of shape (0, M, M): nothing at all, and nothing in it differs from anything.

Mechanism: the comparison broadcasts the expected result to no elements, and all of none are close. Here the shape
  is a gate of its own.
Expected: incorrect/wrong_shape
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A.new_empty((0, *A.shape))
