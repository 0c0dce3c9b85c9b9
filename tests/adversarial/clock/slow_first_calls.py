"""Right and slow in its first four calls, then quick and empty: zeros, with a touch of the inputs for the profiler.

Mechanism: The slow calls pass the check, and make a judge that sizes its loop by the first of them take few samples.
  Nobody looks at what the timed calls return; here every output is compared, timed or not.
Expected: incorrect/wrong_values
Fools: clock
Device: any
"""

import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        quick = torch.zeros_like(A).add_(A[0, 0])  # in the slow calls too, so that its kernels are loaded by then
        if self.calls > 4:
            return quick
        time.sleep(0.05)
        return torch.tril(torch.matmul(A, B))
