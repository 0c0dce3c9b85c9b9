"""Seals the memory that launches share against growing and against new mappings, which holds for all that come later.

Mechanism: that memory is the run's and not the player's; with such a seal every later player failed as it opened the
  device. It is sealed against seals from the start.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import fcntl
import os

import torch
import torch.nn as nn

ADD_SEALS, AGAINST_SEALS, AGAINST_GROWING, AGAINST_WRITING_LATER = 1033, 0x1, 0x4, 0x10

for number in os.listdir("/proc/self/fd"):
    try:
        if "memfd:" in os.readlink(f"/proc/self/fd/{number}"):
            fcntl.fcntl(int(number), ADD_SEALS, AGAINST_SEALS | AGAINST_GROWING | AGAINST_WRITING_LATER)
    except OSError:
        pass


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
