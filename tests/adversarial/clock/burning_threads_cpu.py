"""Keeps the cores busy with threads of its own whenever it is not the one being timed.

Mechanism: A speedup is a ratio, and eager shares the machine with whoever slows it down; the threads rest during the
  candidate's own calls. Here eager's time beside this candidate is held against its time beside the control, and taken
  once more when the candidate is gone.
Expected: rejected/clocks_disagree
Fools: clock
Device: cpu
"""

import os
import threading
import time

import torch
import torch.nn as nn

quiet_until = [time.monotonic() + 1.0]


def burn() -> None:
    matrix = torch.rand(192, 192)
    while True:
        if time.monotonic() < quiet_until[0]:
            time.sleep(0.001)
        else:
            torch.bmm(matrix.expand(8, 192, 192), matrix.expand(8, 192, 192))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for _ in range(2 * (os.cpu_count() or 1)):
            threading.Thread(target=burn, daemon=True).start()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        quiet_until[0] = time.monotonic() + 3600.0
        C = torch.tril(torch.matmul(A, B))
        quiet_until[0] = time.monotonic() + 0.002
        return C
