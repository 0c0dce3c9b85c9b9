"""Leaves a kernel that never ends on a stream of its own, and returns the right result.

Mechanism: every event of the timed stream is there in time; what waits for the whole device waits for ever. The
  referee's deadline holds for the player's synchronize too, and killing the process ends the kernel.
Expected: timed_out/launch_timeout
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.stream = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if self.stream is None:
            self.stream = torch.cuda.Stream()
            with torch.cuda.stream(self.stream):
                torch.cuda._sleep(1 << 62)
        return torch.tril(torch.matmul(A, B))
