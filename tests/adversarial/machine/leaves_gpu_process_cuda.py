"""Starts another process that takes a gigabyte of the GPU and keeps it, and returns the right result.

Mechanism: the memory of a process that nobody waits for is missing in all later rows. It is below the player, and
  ends with it; the referee starts the next one when the memory is back.
Expected: ok/
Fools: nothing
Device: cuda
Kind: library
"""

import subprocess
import sys

import torch
import torch.nn as nn

PROGRAM = """
import time, torch
hoard = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
time.sleep(3600)
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.other = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if self.other is None:
            self.other = subprocess.Popen([sys.executable, "-c", PROGRAM], start_new_session=True)
        return torch.tril(torch.matmul(A, B))
