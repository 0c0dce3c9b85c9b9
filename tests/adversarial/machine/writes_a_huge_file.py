"""Makes a file of eight gigabytes in its temporary folder, all of it hole.

Mechanism: files have a limit, and the kernel's answer to more is SIGXFSZ.
Expected: crashed/signal
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
