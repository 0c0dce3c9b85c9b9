"""Takes all the memory that the GPU has in its first call, holds on to it, and returns the right result.

Mechanism: whoever shares the GPU with it, the judge above all, finds no memory for inputs and truths. That is
  noticed where it happens and costs this row; what is held ends with the process.
Expected: ok/ or out_of_memory/device_memory
Fools: nothing
Device: cuda
Kind: library
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.hoard = []

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.tril(torch.matmul(A, B))
        while not self.hoard or self.hoard[-1] is not None:
            try:
                self.hoard.append(torch.empty(256 << 20, dtype=torch.uint8, device=A.device))
            except torch.OutOfMemoryError:
                self.hoard.append(None)
        return C
