"""Lets the memory that launches share grow by a gigabyte and writes to the end of it.

Mechanism: it cannot shrink, so that the next region that the referee adds would lie inside of it and be refused; and what
  was written stays for as long as the run. It only grows when it must, and is given back behind its last region.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import os

import torch
import torch.nn as nn

for number in os.listdir("/proc/self/fd"):
    try:
        if "memfd:" in os.readlink(f"/proc/self/fd/{number}"):
            size_bytes = os.fstat(int(number)).st_size
            os.posix_fallocate(int(number), size_bytes + (1 << 30), 64 << 20)
    except OSError:
        pass


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
