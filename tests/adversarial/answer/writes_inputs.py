"""Returns the right result and overwrites one of its inputs on the way.

Mechanism: a judge that computed its own result first, or compares once, never sees it; one that goes
  on with the same inputs times another problem. The slot's bytes are compared after each launch.
Expected: rejected/inputs_written
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.tril(torch.matmul(A, B))
        B.mul_(2.0)
        return C
