"""Writes 60 files of a megabyte each where its compiled Triton kernels are kept from run to run.

Mechanism: that folder outlives the player by design, so that nothing else deletes what is put there.
  What is no compiled kernel does not stay.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import os
from pathlib import Path

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.filled = "TRITON_CACHE_DIR" not in os.environ

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.filled:
            self.filled = True
            for number in range(60):
                (Path(os.environ["TRITON_CACHE_DIR"]) / f"filled-{number}").write_bytes(bytes(1 << 20))
        return torch.tril(torch.matmul(A, B))
