"""Returns a contiguous part of a larger tensor of its own.

Mechanism: the storage begins elsewhere than the result; it is the candidate's own memory all the same.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M = A.shape[0]
        larger = torch.empty((M + 1, M), device=A.device, dtype=A.dtype)
        torch.matmul(A, B, out=larger[1:])
        return larger[1:].tril_()
