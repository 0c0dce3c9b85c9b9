"""Multiplies the product by a mask of the lower triangle that is built anew each time.

Mechanism: PyTorch's own operators in another order are right, and a library's: a row without a rank.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        at = torch.arange(A.shape[0], device=A.device)
        return torch.matmul(A, B) * (at[:, None] >= at[None, :]).to(A.dtype)
