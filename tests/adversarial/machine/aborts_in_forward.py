"""Calls abort in forward, as an assertion in C++ or a corrupted heap does.

Mechanism: no handler of Python's runs. The player dies of SIGABRT, leaves no core file, and its row alone pays.
Expected: crashed/signal
Fools: nothing
Device: any
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        os.abort()
