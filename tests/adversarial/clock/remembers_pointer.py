"""Hands back the product of the call before whenever the inputs lie at the same addresses.

Mechanism: A judge that calls again with the same tensors times a look into a dictionary. Here each launch brings other
  values to the same addresses and every output is compared: what is handed back is the product of other inputs.
Expected: incorrect/wrong_values
Fools: clock
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.remembered = {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        key = (A.data_ptr(), B.data_ptr(), A.shape)
        if key not in self.remembered:
            self.remembered[key] = torch.tril(torch.matmul(A, B))
        return self.remembered[key].clone()
