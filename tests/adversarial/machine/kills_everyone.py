"""Sends SIGKILL to every process that it may, in every call.

Mechanism: as root, that is every process of the machine. Behind the wall there is nobody else to be seen.
Expected: ok/ or crashed/signal
Fools: nothing
Device: any
Kind: library or unknown
"""

import os
import signal

import torch
import torch.nn as nn


def alone() -> bool:
    """Whether this is a process namespace of few; nothing of the user's is to be hit where there is no wall."""
    return sum(name.isdigit() for name in os.listdir("/proc")) <= 5


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if alone():
            try:
                os.kill(-1, signal.SIGKILL)
            except OSError:
                pass  # nobody there, or not allowed
        return torch.tril(torch.matmul(A, B))
