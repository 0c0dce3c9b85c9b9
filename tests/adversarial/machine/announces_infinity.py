"""Tells the referee that its infinitely many-th launch has its turn.

Mechanism: JSON in Python knows infinity, which no whole number is; the error that this raises is of another kind than
  those of a wrong type or value, and ended the run. Each frame is read so that whatever it holds costs one row.
Expected: rejected/protocol
Fools: nothing
Device: cpu
"""

import os
import socket
import stat
import struct

import torch
import torch.nn as nn

FRAME = b'{"turn": Infinity}'


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        for number in os.listdir("/proc/self/fd"):
            try:
                if stat.S_ISSOCK(os.fstat(int(number)).st_mode):
                    with socket.socket(fileno=os.dup(int(number))) as channel:
                        channel.sendall(struct.pack(">I", len(FRAME)) + FRAME)
            except OSError:
                pass
        return torch.tril(torch.matmul(A, B))
