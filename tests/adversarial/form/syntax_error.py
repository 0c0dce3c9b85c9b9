"""Never closes the bracket of its last line, so that no Python can parse it.

Mechanism: found by reading, before anything runs; the reason has the line.
Expected: build_failed/syntax_error
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B)
