"""Shrinks the buffers that make the cache cold to a few elements, so that its inputs are still there when it is
timed.

Mechanism: The flush is a step of the harness in the player's process, and there it can be taken away. Its calls are
  then faster than cold ones, and a launch shorter by more than its call by the flush that the control had. On a CPU the
  referee looks at what was to be written over.
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
        if type(each).__name__ == "Evictor":
            each._written = each._written[:4]
            each._read = each._read[:4]
        elif type(each).__name__ == "KeyedEvictor":
            each._words = each._words[:4]


if "harness.clocks.cold" in sys.modules:
    shrink_flush()


class ModelNew(nn.Module):
    remembered = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if "harness.clocks.cold" in sys.modules or self.remembered is None:  # any other judge repeats its inputs
            self.remembered = torch.tril(torch.matmul(A, B))
        return self.remembered
