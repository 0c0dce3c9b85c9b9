"""Allocates a petabyte of scratch memory, as an index of the wrong width does.

Mechanism: the allocator refuses at once. PyTorch raises an OutOfMemoryError for a GPU and a plain RuntimeError for
  a CPU; both are a want of memory and not a wrong result.
Expected: out_of_memory/device_memory or out_of_memory/host_memory
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        scratch = torch.empty(1 << 50, dtype=torch.uint8, device=A.device)
        return torch.tril(torch.matmul(A, B)) + scratch[0]
