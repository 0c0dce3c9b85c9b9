"""Closes every descriptor of its process but the standard ones, the channel to the referee among them.

Mechanism: the process lives and can say nothing any more. A closed channel is an answer: the player is gone.
Expected: crashed/exited or crashed/signal or crashed/cuda_error or timed_out/launch_timeout
Fools: nothing
Device: any
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        os.closerange(3, 4096)
        return torch.tril(torch.matmul(A, B))
