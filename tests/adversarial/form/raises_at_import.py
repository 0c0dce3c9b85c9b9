"""Raises when it is imported.

Mechanism: the import ends in a builder of its own; the reason has message and line.
Expected: build_failed/import_error
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn

raise RuntimeError("this file was never finished")


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
