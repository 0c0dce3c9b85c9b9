"""Ends its process, with exit code 0, in forward.

Mechanism: a judge in the same process ends with it, and its shell sees success. A player is gone
  without a report, and the next one is fresh.
Expected: crashed/exited
Fools: nothing
Device: any
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        os._exit(0)
