"""Returns a tensor without memory, whose product is computed when PyTorch dispatches an operation on it.

Mechanism: A wrapper subclass has a shape and a type and no values; `__torch_dispatch__` makes them when a comparison
  asks, after the clock has been stopped. Here an output must have memory of its own, to be copied and overwritten.
Expected: incorrect/wrong_type or incorrect/raised or rejected/clocks_disagree
Fools: clock
Device: any
"""

import torch
import torch.nn as nn
from torch.utils._pytree import tree_map


class Lazy(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, A: torch.Tensor, B: torch.Tensor):
        made = torch.Tensor._make_wrapper_subclass(cls, A.shape, dtype=A.dtype, device=A.device)
        made.factors, made.product = (A, B), None
        return made

    def value(self) -> torch.Tensor:
        if self.product is None:
            self.product = torch.tril(torch.matmul(*self.factors))
        return self.product

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        args = tree_map(lambda each: each.value() if isinstance(each, Lazy) else each, args)
        return function(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return Lazy(A, B)
