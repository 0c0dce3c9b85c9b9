"""Writes to stdout in its first call, a megabyte at a time, and never stops.

Mechanism: a judge that keeps what is printed dies of it, and one that reads to the end of the stream never gets
  there. The first and last kilobytes are kept, and the wait for the call has a deadline.
Expected: timed_out/launch_timeout
Fools: nothing
Device: any
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        while True:
            os.write(1, b"x" * 1_000_000 + b"\n")
