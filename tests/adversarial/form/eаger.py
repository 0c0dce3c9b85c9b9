"""Is called as the baseline is, with a letter of another alphabet that no reader tells from the Latin one.

Mechanism: the names are different to every program and the same to every eye. A name is made of plain characters, and shown as a
  question mark where it has others.
Expected: build_failed/import_error
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
