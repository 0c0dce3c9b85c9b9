"""Never comes back from forward.

Mechanism: every wait for a player has a deadline.
Expected: timed_out/launch_timeout
Fools: nothing
Device: any
"""

import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        while True:
            time.sleep(1)
