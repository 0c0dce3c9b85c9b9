"""Leaves eight megabytes in /dev/shm, under a name of its own.

Mechanism: shared memory lives on without any process, and is in no folder that anybody deletes. What was not there
  before a builder or player is gone after it.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

from pathlib import Path

import torch
import torch.nn as nn

try:
    Path("/dev/shm/left-by-a-candidate").write_bytes(bytes(8 << 20))
except OSError:
    pass


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
