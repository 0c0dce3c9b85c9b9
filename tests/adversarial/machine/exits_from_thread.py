"""Ends its process from a thread of its own, a fifth of a second after its first call.

Mechanism: all goes well until the process is gone between two calls, with exit code 0, while its judge is
  busy with something else. A closed channel is seen wherever it is waited for.
Expected: crashed/exited
Fools: nothing
Device: any
"""

import os
import threading

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.timer = threading.Timer(0.2, os._exit, args=[0])

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.timer.is_alive():
            self.timer.start()
        return torch.tril(torch.matmul(A, B))
