"""Is called as another candidate of its folder is, but for a dash in the place of a line.

Mechanism: its row is taken for the other's, in a table, a report, and whatever joins results by name. Of two names that look alike
  the plainer is kept, and of two as plain the one that was there first.
Expected: build_failed/import_error
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
