"""Returns its first input, which already has the right shape, dtype and zeros.

Mechanism: the form is right and nothing is computed. The output's storage lies inside the input's slot,
  and that is asked before any value.
Expected: rejected/aliases_input
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A
