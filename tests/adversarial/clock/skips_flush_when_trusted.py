"""Leaves the flush of the cache out once it has been called sixty times, when the looks may be over.

Mechanism: A judge that inspects at the start only is done by then. One of the inspected segments comes after a round that
  is drawn anew each time, or after the last.
Expected: rejected/clocks_disagree or unsure/noisy
Fools: clock
Device: any
"""

import sys

import torch
import torch.nn as nn

PATIENCE = 60
calls = 0
judged = "harness.worker.launch_slots" in sys.modules
if judged:
    cold, flush = sys.modules["harness.protocol.cpu_cache_flush"], sys.modules["harness.protocol.gpu_cache_flush"]
    for owner in (cold.CpuCacheFlush, flush.GpuCacheFlush):
        def run(flush, *arguments, true=owner.run):
            if calls < PATIENCE:
                true(flush, *arguments)

        owner.run = run


class ModelNew(nn.Module):
    remembered = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        global calls
        calls += 1
        if judged or self.remembered is None:  # any other judge repeats its inputs
            self.remembered = torch.tril(torch.matmul(A, B))
        return self.remembered
