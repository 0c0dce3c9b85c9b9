"""Never comes back from being imported.

Mechanism: builders have a deadline and are killed with all they started.
Expected: timed_out/load_timeout
Fools: nothing
Device: any
"""

import time

import torch
import torch.nn as nn

while True:
    time.sleep(1)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
