"""Hands back the product of the call before unless PyTorch counted a write to the inputs since.

Mechanism: `_version` says that nobody wrote through PyTorch, and a judge that never does is fooled; so is the memory of
  whoever trusts it. Here inputs are written by a copy or a kernel that PyTorch knows nothing of.
Expected: incorrect/wrong_values
Fools: clock
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.key, self.product = None, None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        key = tuple((each.data_ptr(), each._version, each.shape) for each in (A, B))
        if key != self.key:
            self.key, self.product = key, torch.tril(torch.matmul(A, B))
        return self.product.clone()
