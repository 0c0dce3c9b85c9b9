"""Keeps one output buffer per shape and returns it again in every call.

Mechanism: each call writes all of it, so whatever the caller did to the last result does no harm.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffers = {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        key = (A.shape, A.dtype, A.device)
        if key not in self.buffers:
            self.buffers[key] = torch.empty_like(A)
        C = self.buffers[key]
        torch.matmul(A, B, out=C)
        return C.tril_()
