"""Replaces PyTorch's comparisons by functions that always agree, and returns zeros.

Mechanism: the judge calls `torch.allclose` in the process that it judges. Here a candidate's process hands over
  bytes, and the referee compares them in its own.
Expected: incorrect/wrong_values
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


def agree(*arguments, **named):
    return True


torch.allclose = torch.equal = torch.Tensor.allclose = torch.Tensor.equal = torch.testing.assert_close = agree
torch.isclose = torch.Tensor.isclose = lambda own, other, **named: torch.ones_like(own, dtype=torch.bool)
torch.Tensor.__eq__ = torch.isclose


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(A)
