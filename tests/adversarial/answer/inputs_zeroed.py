"""Sets its inputs to zero once it has read them, and from then on finds that there is nothing left to multiply.

Mechanism: the first call is right, and the judge's later calls, which it times, get the same inputs, now zero.
  Here the inputs of each launch are compared after it, and each launch has new ones.
Expected: rejected/inputs_written
Fools: clock
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if A[-1, -1].item() == 0.0:
            return torch.zeros_like(A)
        C = torch.tril(torch.matmul(A, B))
        A.zero_()
        B.zero_()
        return C
