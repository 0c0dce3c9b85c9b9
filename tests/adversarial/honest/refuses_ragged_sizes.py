"""Works on sizes that are a multiple of 32 and raises ValueError, with a reason, on others.

Mechanism: the timed size is one that it announces. A kernel that says what it does not do is worth more than one that
  is silently wrong there; what it refused stands on its row.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """tril(A @ B) for square matrices whose size is a multiple of 32."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M = A.shape[0]
        if M % 32:
            raise ValueError(f"M must be a multiple of 32, and is {M}")
        return torch.tril(torch.cat([torch.matmul(rows, B) for rows in A.split(32)]))
