"""Leaves three thousand folders in its temporary folder, each inside the one before.

Mechanism: what deletes a folder by calling itself for each folder inside ends with an error that nobody awaits there, or
  leaves all of it behind. Folders are moved up before they are deleted, so that no depth is too deep.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import os
import tempfile

import torch
import torch.nn as nn

here = os.getcwd()
os.chdir(tempfile.mkdtemp())
for _ in range(3000):
    os.mkdir("deeper")
    os.chdir("deeper")
os.chdir(here)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
