"""Returns its result inside a list, where the reference returns a tensor.

Mechanism: the structure of what is returned is a gate before any arithmetic.
Expected: incorrect/wrong_type
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return [torch.tril(torch.matmul(A, B))]
