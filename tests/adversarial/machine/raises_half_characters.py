"""Raises an exception whose words have halves of characters, marks that turn the line around, and codes for terminals.

Mechanism: JSON carries half a character that no encoding of a file does: who writes a record of such words fails in
  his own process.
Expected: incorrect/raised
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a\udc80b\u202e", torch.zeros(1))

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        raise ValueError("\udfff \ud83d \u202e\x1b[2J\x00 \u2028 end")
