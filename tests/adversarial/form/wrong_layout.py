"""Returns the right values in every second column of a buffer twice as wide.

Mechanism: a comparison by index does not notice, and the next kernel that reads rows pays for it.
  An output is dense, in whatever order of its dimensions, where the reference's own has no gaps.
Expected: incorrect/wrong_layout
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        wide = A.new_empty(A.shape[0], 2 * A.shape[0])
        wide[:, ::2] = torch.tril(torch.matmul(A, B))
        return wide[:, ::2] if A.shape[0] > 1 else wide[:, :1].clone()
