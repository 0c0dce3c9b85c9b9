"""Blocks every signal that can be blocked, then never comes back from forward.

Mechanism: SIGALRM, SIGTERM and a watchdog's handler wait for ever behind the mask. SIGKILL cannot be blocked.
Expected: timed_out/launch_timeout
Fools: nothing
Device: any
"""

import signal
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            time.sleep(1)
