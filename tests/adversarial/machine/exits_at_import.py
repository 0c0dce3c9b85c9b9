"""Ends its process, with exit code 0, when it is imported.

Mechanism: a judge in the same process ends with it, and its shell sees success. A builder of its own
  is gone without an answer, and the answer is what counts.
Expected: crashed/exited
Fools: nothing
Device: any
"""

import os

import torch
import torch.nn as nn

os._exit(0)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
