"""Registers a function that never ends for the end of its process, and starts a thread that never ends.

Mechanism: a judge that waits for its worker's orderly end waits for ever. Nobody asks a player for an orderly end.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import atexit
import threading
import time

import torch
import torch.nn as nn

atexit.register(time.sleep, 3600)
threading.Thread(target=time.sleep, args=[3600]).start()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
