"""Looks for the expected result among all objects that the garbage collector knows, and returns a copy.

Mechanism: wherever a judge keeps its own result (a local, an attribute, a list), the collector lists the tensor.
  Here the truth is in another process; what is listed are inputs and the candidate's own outputs.
Expected: incorrect/wrong_values
Fools: answer
Device: any
"""

import gc

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        diagonal = A.diagonal() * B.diagonal()
        for found in gc.get_objects():
            if type(found) is not torch.Tensor or found.shape != A.shape or found.dtype != A.dtype:
                continue
            if found.device == A.device and torch.equal(found.diagonal(), diagonal):
                return found.clone()
        return torch.zeros_like(A)
