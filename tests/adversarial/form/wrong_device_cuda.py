"""Returns its result on the CPU for inputs on the GPU.

Mechanism: the device is a gate before any arithmetic.
Expected: incorrect/wrong_device
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B)).cpu()
