"""Takes the flush of the cache away and computes the first rows of the product in its place, before the clock starts.

Mechanism: By the referee's clock a launch is as long as the control's: what the work takes before the window, the flush
  took there. The window is shorter by it, whether the inputs lay open early or not. Only a flush that the referee sees the
  result of leaves no such room: it looks for the word that the cache was to be written over with, on a GPU in segments
  that nobody can tell from others, and there for the sum over what was to be read.
Expected: rejected/clocks_disagree or unsure/noisy
Fools: clock
Device: any
"""

import sys

import torch
import torch.nn as nn

PART = 0.25  # of the rows: about as long as the flush
ahead = None
stages = sys.modules.get("harness.worker.launch_slots")
if stages:
    sys.modules["harness.protocol.cpu_cache_flush"].CpuCacheFlush.run = lambda flush, word: None
    sys.modules["harness.protocol.gpu_cache_flush"].GpuCacheFlush.run = lambda flush, stream, address: None
    for stage_type in (stages.CudaSlots, stages.CpuSlots):
        def inputs(stage, index, specs, true=stage_type.inputs):
            global ahead
            A, B = given = true(stage, index, specs)
            rows = int(PART * A.shape[0])
            ahead = torch.empty_like(A)
            torch.matmul(A[:rows], B, out=ahead[:rows])
            return given

        stage_type.inputs = inputs


class ModelNew(nn.Module):
    remembered = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if stages:
            rows = int(PART * A.shape[0])
            torch.matmul(A[rows:], B, out=ahead[rows:])
            return ahead.tril_()
        if self.remembered is None:  # any other judge repeats its inputs
            self.remembered = torch.tril(torch.matmul(A, B))
        return self.remembered
