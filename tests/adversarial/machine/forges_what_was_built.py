"""Answers in the builder's place: built of a file of four gigabytes, named twenty thousand times.

Mechanism: the referee hashes what a build was made of, to know later whether it still holds, and nobody ends the
  referee; a run waited for that for days. Files are hashed once each, up to a size that no honest build comes near.
Expected: rejected/protocol
Fools: nothing
Device: any
"""

import json
import os
import socket
import struct
import sys
from pathlib import Path

import torch
import torch.nn as nn

channel = Path(f"/proc/self/fd/{sys.argv[1]}") if sys.argv[1:2] and sys.argv[1].isdigit() else None
if len(sys.argv) == 2 and channel is not None and channel.exists():
    huge = Path(os.environ["HOME"], "huge")
    with huge.open("wb") as file:
        file.truncate((4 << 30) - 1)
    answer = {"extensions": [], "log": "", "failure": None, "warnings": [], "files": 20_000 * [str(huge)]}
    body = json.dumps(answer).encode()
    socket.socket(fileno=int(sys.argv[1])).sendall(struct.pack(">I", len(body)) + body)
    os._exit(0)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
