"""Has its process answer with numbers of four thousand digits, booleans for numbers and names of megabytes.

Mechanism: a number of JSON has as many digits as somebody writes, and another language's largest is not Python's.
Expected: rejected/protocol
Fools: nothing
Device: any
"""

import sys

import torch
import torch.nn as nn

MANY = 10 ** 4200
frames = vars(sys)["modules"].get("harness.protocol.frames")
if frames:
    true_send = frames.Channel.send

    def send(channel, frame, timeout_s=None):
        for report in frame.get("launched", []):
            report.update(beyond=[MANY, -MANY], values=[MANY, "\udfff" * 1000, [[[[]]]]], reordered=MANY)
        if "loaded" in frame:
            frame = {**frame, "digests": {"\ud800" * 1000: MANY}, "alike": MANY}
        return true_send(channel, frame, timeout_s)

    setattr(frames.Channel, "send", send)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
