"""Masks by a row number that is the position divided by the timed size, which is written into the code.

Mechanism: right at the one size that is compared and timed, and at no other. Here the sizes that the problem names
  are all checked.
Expected: incorrect/wrong_values
Fools: answer
Device: any
"""

import torch
import torch.nn as nn

SIZE = {"cuda": 2048, "cpu": 1024}


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        size = SIZE[A.device.type]
        at = torch.arange(A.numel(), device=A.device).view(A.shape)
        mask = at // size >= at % size
        return torch.matmul(A, B) * mask
