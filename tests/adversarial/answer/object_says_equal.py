"""Returns an object that is no tensor and equals whatever it is compared with.

Mechanism: any object with `__torch_function__` may answer for `torch.allclose`, and this one has a shape and a
  dtype too. Here what `forward` returns must be a tensor before anything else is asked.
Expected: incorrect/wrong_type
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


class Anything:
    def __init__(self, like: torch.Tensor) -> None:
        self.shape, self.dtype, self.device = like.shape, like.dtype, like.device

    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return lambda *arguments, **named: self

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        return True


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return Anything(A)
