"""Draws the inputs itself, from the seed that everybody uses, and returns the product of those.

Mechanism: with seed 0 and one set of inputs the result is known before they are seen. Here seeds come from the
  operating system after the candidate is loaded, one for each launch, and stay with the referee.
Expected: incorrect/wrong_values
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.results = {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M = A.shape[0]
        if M not in self.results:
            source = torch.Generator().manual_seed(0)
            first, second = (torch.tril(torch.rand(M, M, generator=source)) for _ in range(2))
            self.results[M] = torch.tril(torch.matmul(first.to(A.device), second.to(A.device)))
        return self.results[M]
