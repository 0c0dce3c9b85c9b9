"""Imports a module that is not installed.

Mechanism: the import ends in a builder of its own; the reason has the line.
Expected: build_failed/import_error
Fools: nothing
Device: any
"""

import no_such_kernel_library

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
