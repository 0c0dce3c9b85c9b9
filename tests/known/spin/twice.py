"""Waits twice as long as the reference, in two goes."""

import time

import torch
import torch.nn as nn

TIMES = 2


class ModelNew(nn.Module):
    def __init__(self, spin: int) -> None:
        super().__init__()
        self.spin = spin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(TIMES):
            if x.is_cuda:
                torch.cuda._sleep(self.spin)
                continue
            until = time.perf_counter_ns() + self.spin
            while time.perf_counter_ns() < until:
                pass
        return x + 1
