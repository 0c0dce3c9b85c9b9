"""Sets the size in the reference's module to 1, where a product of matrices is a product of numbers.

Mechanism: the judge draws its inputs after the candidate is imported, by a function that reads the size from its
  module. Here the sizes are the referee's, in a process that has never imported a candidate.
Expected: incorrect/wrong_values
Fools: answer
Device: any
"""

import torch
import torch.nn as nn

for found in nn.Module.__subclasses__():
    if found.__name__ == "Model":
        found.forward.__globals__["M"] = 1


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A * B
