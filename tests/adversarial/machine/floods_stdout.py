"""Writes 300 MB to stdout in its first call, past Python's buffers, and is right.

Mechanism: a judge that keeps what is printed runs out of memory, one that does not read it waits for
  ever. The pipe is drained by a thread that keeps the first and last kilobytes.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import os

import torch
import torch.nn as nn

def write_all(text: bytes) -> None:
    while text:
        text = text[os.write(1, text):]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.flooded = False

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.flooded:
            self.flooded = True
            line = b"x" * 1023 + b"\n"
            for _ in range(300):
                write_all(line * 1024)
        return torch.tril(torch.matmul(A, B))
