"""Prints to stdout what looks like a message of a judge: a JSON line, a length word.

Mechanism: whatever a candidate prints is text, drained and dropped; messages go another way.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        print('{"status": "ok", "time_us": 0.001}')
        os.write(1, b"\x00\x00\x00\x10 not a frame \xff\xfe")
        return torch.tril(torch.matmul(A, B))
