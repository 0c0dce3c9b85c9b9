"""Writes 300 files of a megabyte each to its temporary folder and leaves them there.

Mechanism: a thousand candidates like this fill a disk. The folder is private to the player and is deleted after it.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import tempfile
from pathlib import Path

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.filled = False

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.filled:
            self.filled = True
            folder = Path(tempfile.mkdtemp(prefix="filled-"))
            for number in range(300):
                (folder / str(number)).write_bytes(bytes(1 << 20))
        return torch.tril(torch.matmul(A, B))
