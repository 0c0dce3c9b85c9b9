"""Writes one row too many: the loop over the rows of its output goes on for one more.

Mechanism: what lies behind the output belongs to the C library or to another tensor. It breaks the naive judge's
  process and ends it; here it breaks the candidate's own.
Expected: crashed/signal or incorrect/wrong_values
Fools: nothing
Device: cpu
"""

import ctypes

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        product = torch.tril(torch.matmul(A, B))
        C = torch.empty_like(A)
        row_bytes = C.stride(0) * C.element_size()
        for row in range(len(C) + 1):
            source = min(row, len(C) - 1)
            ctypes.memmove(C.data_ptr() + row * row_bytes, product.data_ptr() + source * row_bytes, row_bytes)
        return C
