"""Takes it for granted that inputs lie between 0 and 1, as those that it has seen do, and clips the rest away.

Mechanism: whoever draws inputs from one distribution checks one distribution. Here signs are turned over and
  magnitudes spread, wherever the problem is a product.
Expected: incorrect/wrong_values
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A.clamp(0, 1), B.clamp(0, 1)))
