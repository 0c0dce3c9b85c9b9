"""Finds the reference's class among the subclasses of nn.Module and gives it a forward that returns zeros, as its own.

Mechanism: both then return the same, whatever the comparison. Here the reference's class exists in the referee's
  process only, which has never imported a candidate.
Expected: incorrect/wrong_values
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


def zeros(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(A)


for found in nn.Module.__subclasses__():
    if found.__name__ == "Model":
        found.forward = zeros


class ModelNew(nn.Module):
    forward = zeros
