"""Reads address 0 when it is imported.

Mechanism: the builder dies of SIGSEGV, and its row alone pays.
Expected: crashed/signal
Fools: nothing
Device: any
"""

import ctypes

import torch
import torch.nn as nn

ctypes.string_at(0)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
