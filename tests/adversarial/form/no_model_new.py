"""Misspells the class: ModelNeww.

Mechanism: found by reading, before anything runs; the reason names the class that is there.
Expected: build_failed/no_model_new
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNeww(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
