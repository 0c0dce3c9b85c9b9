"""Returns two tensors where the reference returns one.

Mechanism: a judge that takes the first of what it gets would pass it; here their number must be right.
Expected: incorrect/wrong_count or incorrect/wrong_type
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor):
        return torch.tril(torch.matmul(A, B)), A.new_zeros(1)
