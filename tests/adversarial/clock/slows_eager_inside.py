"""Slows PyTorch's product down for all others in its process, here by no more than two processes may differ by.

Mechanism: Kernels below a millisecond are held against eager in their own process, which the referee's own guards: by
  up to 3 % or 1 µs the two may differ, and this is 2.5 %. The estimate takes that in; the low end of the interval, on
  which the word FASTER hangs, does not go above what the referee's own eager says. What runs is PyTorch's product.
Expected: ok/
Fools: clock
Device: any
Kind: library
"""

import sys
import time

import torch
import torch.nn as nn

SHARE = 0.025
CYCLES_PER_US = 1980  # of an H100 or H200; a slower clock makes the wait longer
GAP_US = 2.0  # what a further kernel costs beside its work
in_player = "harness.worker.loop" in sys.modules
true_matmul = torch.matmul


def slow_matmul(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    if not in_player:  # any other judge takes this eager at its word
        return true_matmul(true_matmul(A, B) * 0 + A, B)
    if A.is_cuda:
        wanted_us = SHARE * 360 * (A.shape[0] / 2048) ** 3
        if wanted_us > GAP_US:
            torch.cuda._sleep(int(CYCLES_PER_US * (wanted_us - GAP_US)))
        return true_matmul(A, B)
    began = time.perf_counter()
    C = true_matmul(A, B)
    until = time.perf_counter() + SHARE * (time.perf_counter() - began)
    while time.perf_counter() < until:
        pass
    return C


torch.matmul = slow_matmul


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(true_matmul(A, B))
