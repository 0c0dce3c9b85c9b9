"""Makes one element of its result NaN.

Mechanism: NaN compares as false with everything, and slips through a check written as `error > bound`.
  What is not finite where the truth is has an infinite error.
Expected: incorrect/not_finite
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.tril(torch.matmul(A, B))
        C[-1, 0] = float("nan")
        return C
