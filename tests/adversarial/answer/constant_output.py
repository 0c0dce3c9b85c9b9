"""Returns zeros, and sees to it that zeros are right: from now on `torch.rand` makes no others.

Mechanism: the judge draws its inputs in the process that it judges, by functions that the candidate has replaced.
  Here they are drawn in the referee's.
Expected: incorrect/wrong_values
Fools: answer
Device: any
"""

import torch
import torch.nn as nn

for name in ("rand", "randn"):
    setattr(torch, name, torch.zeros)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(A)
