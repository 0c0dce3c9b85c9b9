"""Leaves the last term out of every sum of more than 512.

Mechanism: one term in 512 is two parts in a thousand of all-positive sums, and a tolerance of 1e-2 lets it go. Here
  magnitudes that spread over binades, and one-hot inputs, make that term the whole sum.
Expected: incorrect/wrong_values
Fools: answer
Device: any
"""

import torch
import torch.nn as nn

LONG = 512


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        # The last k of row i is i itself, so its term is A[i, i] * B[i, j].
        last_terms = torch.tril(A.diagonal()[:, None] * B, diagonal=-LONG)
        return torch.tril(torch.matmul(A, B)) - last_terms
