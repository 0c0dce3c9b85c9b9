"""Leaves a daemon behind, twice forked and in a session of its own, that holds every pipe and socket of its parent's.

Mechanism: a judge that reads a pipe to its end waits for the daemon, one that kills a process group misses it, and on
  a GPU it goes on holding the device. It ends with its namespace, or is adopted, found and killed.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import os
import time

import torch
import torch.nn as nn


def start_daemon() -> None:
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    os.setsid()
    if os.fork() == 0:
        time.sleep(3600)
    os._exit(0)


start_daemon()  # one in the process that builds, one in the process that runs


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.started = False

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.started:
            self.started = True
            start_daemon()
        return torch.tril(torch.matmul(A, B))
