"""Writes the harness's own messages, with a time of its choice in them, to every descriptor that it finds.

Mechanism: one of them is the channel to the referee, where a report of launches comes before anything was computed.
  Turns must come in order and every output is compared, so that what is reported too early is wrong or no protocol.
Expected: rejected/protocol or incorrect/wrong_values or incorrect/not_finite
Fools: nothing
Device: any
"""

import json
import os
import stat
import struct

import torch
import torch.nn as nn

LAUNCH = {"time_us": 0.001, "host_us": 0.001, "values": []}
FRAMES = ({"queued": 1}, {"launched": [LAUNCH], "end_to_end_us": 0.001, "status": "ok"})


def forge() -> None:
    for fd in range(3, 256):
        try:
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                continue
            for frame in FRAMES:
                body = json.dumps(frame).encode()
                os.write(fd, struct.pack(">I", len(body)) + body)
        except OSError:
            pass


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        forge()
        return torch.tril(torch.matmul(A, B))
