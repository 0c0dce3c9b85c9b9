"""Prints a line to stdout and one to stderr in every call, as people do who look for a bug.

Mechanism: both streams are drained all the time, so that a print never blocks, and reach nobody.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        print("forward called with", tuple(A.shape))
        print("forward called on", A.device, file=sys.stderr)
        return torch.tril(torch.matmul(A, B))
