"""Writes noise to every socket that it finds, a length of four gigabytes first.

Mechanism: a reader that believes the length allocates it, one that expects an answer waits for the rest. Frames have
  a limit, and what is none ends the row.
Expected: rejected/protocol
Fools: nothing
Device: any
"""

import os
import stat

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        for fd in range(3, 256):
            try:
                if stat.S_ISSOCK(os.fstat(fd).st_mode):
                    os.write(fd, b"\xff" * 4096)
            except OSError:
                pass
        return torch.tril(torch.matmul(A, B))
