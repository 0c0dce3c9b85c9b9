"""A guess that never looks at the data: (i - j + 1) / 4, the expected value on uniform inputs.

Mechanism: a tolerance of 1e-2 passes it on more than half of the elements, and a test that looks at a
  sample, or at the mean, on all. Every element counts here, on inputs of other signs and magnitudes too.
Expected: incorrect/wrong_values
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M = A.shape[0]
        at = torch.arange(M, device=A.device, dtype=A.dtype)
        return torch.tril((at[:, None] - at[None, :] + 1) / 4)
