"""Calls cudaDeviceReset after its work.

Mechanism: the context that PyTorch and the harness share in that process is gone, with all memory and events in it.
  The referee has a context of its own; the row says what the next call of the player's said.
Expected: crashed/cuda_error or crashed/signal or timed_out/launch_timeout
Fools: nothing
Device: cuda
"""

import ctypes

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.tril(torch.matmul(A, B))
        runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
        runtime.cudaDeviceReset()
        return C
