"""Never comes back from forward, and ignores SIGTERM, SIGINT and SIGHUP.

Mechanism: a polite kill is not heard. Players are ended by SIGKILL, from outside their namespace.
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
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)
