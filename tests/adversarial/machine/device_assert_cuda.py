"""Indexes beyond the end of a tensor on the GPU, where only a kernel notices.

Mechanism: the assertion in the kernel breaks the context, and an innocent later call raises. The player says so and
  leaves; the referee's own context never noticed.
Expected: crashed/cuda_error
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        one_too_far = torch.arange(1, A.shape[0] + 1, device=A.device)
        return torch.tril(torch.matmul(A, B))[one_too_far]
