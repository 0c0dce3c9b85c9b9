"""Returns the right values stored column by column, where the reference's are stored row by row.

Mechanism: a comparison by index does not notice, and the next kernel that reads rows pays for it.
  Strides are a gate where the reference's own output has no gaps.
Expected: incorrect/wrong_layout
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B)).T.contiguous().T
