"""Reads address 0 in forward.

Mechanism: the player dies of SIGSEGV, and its row alone pays.
Expected: crashed/signal
Fools: nothing
Device: any
"""

import ctypes

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        ctypes.string_at(0)
        return torch.tril(torch.matmul(A, B))
