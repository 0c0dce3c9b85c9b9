"""Keeps a gigabyte more in every step of a loop, until the GPU has none left, and lets the exception out.

Mechanism: the context is whole and the memory is gone, for the referee as well, for as long as the process lives.
  The player is killed, and the next one starts when its memory is back.
Expected: out_of_memory/device_memory
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        kept = []
        while True:
            kept.append(torch.empty(1 << 30, dtype=torch.uint8, device=A.device))
