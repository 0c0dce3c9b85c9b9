"""Is called as PyTorch's compiler is, but for the character between the words.

Mechanism: the table has a row torch.compile, the baseline's, and beside it one that is taken for it. A name that differs from a
  baseline's in case, in what separates its words, or in letters that look alike is refused.
Expected: build_failed/import_error
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
