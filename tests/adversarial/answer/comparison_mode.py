"""Enters a mode that sees every call of PyTorch's functions and answers the comparisons itself; returns zeros.

Mechanism: a TorchFunctionMode also catches the comparisons that were bound under other names before. Here it can
  answer only in its own process, where nothing is compared.
Expected: incorrect/wrong_values
Fools: answer
Device: any
"""

import torch
import torch.nn as nn
from torch.overrides import TorchFunctionMode

COMPARISONS = {"allclose", "isclose", "equal", "eq", "all", "__eq__"}


class Agree(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), named=None):
        if getattr(function, "__name__", "") in COMPARISONS:
            return True
        return function(*arguments, **(named or {}))


Agree().__enter__()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(A)
