"""Shrinks the buffers that make the cache cold to a few elements, so that its inputs are still there when it is
timed.

Mechanism: The flush is a step of the harness in the player's process, and there it can be taken away. Its calls are
  then faster than cold ones. The referee looks whether the cache was written over with the word of the launch, and on a
  GPU whether what must be read after it was.
Expected: rejected/clocks_disagree or unsure/noisy
Fools: clock
Device: any
"""

import gc
import sys

import torch
import torch.nn as nn


def shrink_flush() -> None:
    for each in gc.get_objects():
        if type(each).__name__ == "GpuCacheFlush":
            each._pairs = 4
        elif type(each).__name__ == "CpuCacheFlush":
            each._own, each._helpers = each._own[:1], []


if "harness.protocol.cpu_cache_flush" in sys.modules:
    shrink_flush()


class ModelNew(nn.Module):
    remembered = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if "harness.protocol.cpu_cache_flush" in sys.modules or self.remembered is None:  # any other judge repeats its inputs
            self.remembered = torch.tril(torch.matmul(A, B))
        return self.remembered
