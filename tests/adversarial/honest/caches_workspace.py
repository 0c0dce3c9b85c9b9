"""Keeps a scratch workspace per shape for the product, and returns a result of its own.

Mechanism: the workspace still holds the last call's product, and each call writes all of it before it is
  read. State is no cheat; relying on what an earlier call left would be.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.workspaces = {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        key = (A.shape, A.dtype, A.device)
        if key not in self.workspaces:
            self.workspaces[key] = torch.empty_like(A)
        torch.matmul(A, B, out=self.workspaces[key])
        return torch.tril(self.workspaces[key])
