"""Writes the result over its first input and returns that memory as a tensor with a storage object of its own.

Mechanism: `is` and a comparison of storages see two tensors, and the one comparison comes before anybody looks at
  the input again. Here the address of what is returned may not lie in the inputs' slot.
Expected: rejected/aliases_input
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.from_dlpack(A)
        C.copy_(torch.tril(torch.matmul(A, B)))
        return C
