"""Makes a file of eight gigabytes in its temporary folder, all of it hole.

Mechanism: every file has a limit, so that the call fails, and an exception in forward is the candidate's own. What is
  in the folder goes with it.
Expected: incorrect/raised
Fools: nothing
Device: any
"""

import tempfile

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        with tempfile.NamedTemporaryFile() as file:
            file.truncate(8 << 30)
        return torch.tril(torch.matmul(A, B))
