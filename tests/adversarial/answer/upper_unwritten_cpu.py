"""Never writes the upper triangle of its output.

Mechanism: the ones stand for what an allocator hands back: memory that somebody else has used. Any
  comparison of whole outputs sees them; what is handed back here was overwritten with 0xFF before.
Expected: incorrect/wrong_values
Fools: nothing
Device: cpu
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.ones_like(A)
        i, j = torch.tril_indices(A.shape[0], A.shape[0], device=A.device)
        C[i, j] = torch.matmul(A, B)[i, j]
        return C
