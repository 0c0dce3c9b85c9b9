"""Forks sixty processes that sleep, ignore what signals they can and hold every pipe and socket.

Mechanism: each is a child to find and to kill, in no process group that anybody knows. All are in the player's
  namespace, or its descendants, and their number is limited.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import os
import signal
import time

import torch
import torch.nn as nn


def start_sleeper() -> None:
    if os.fork():
        return
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(3600)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.started = False

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.started:
            self.started = True
            for _ in range(60):
                start_sleeper()
        return torch.tril(torch.matmul(A, B))
