"""Calls sys.exit in forward, which is no Exception and passes every `except Exception`.

Mechanism: a judge in the same process ends in good order, with status 0 and without a table. A player that
  goes without a report has crashed.
Expected: crashed/exited
Fools: nothing
Device: any
"""

import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        sys.exit(0)
