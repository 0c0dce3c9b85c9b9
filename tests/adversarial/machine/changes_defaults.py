"""Changes PyTorch's defaults for all that comes after it: the dtype, the seed, the printing.

Mechanism: a judge in the same process draws float64 inputs for the next candidate, or always the same ones. Inputs,
  seeds and truths are the referee's, in another process.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn

torch.set_default_dtype(torch.float64)
torch.set_printoptions(precision=1)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return torch.tril(torch.matmul(A, B))
