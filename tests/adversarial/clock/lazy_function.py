"""Returns a subclass of Tensor that multiplies only when an operation reads it.

Mechanism: `__torch_function__` sees every operation on the result; the first that is not about its form does the work,
  after the clock has been stopped. The copy that takes the output does so here too, and the referee's own clock, which
  runs from the inputs to the next turn, sees it.
Expected: rejected/clocks_disagree or rejected/below_floor or incorrect/wrong_type
Fools: clock
Device: any
"""

import torch
import torch.nn as nn

FORM = ("__get__", "size", "stride", "dim", "numel", "untyped_storage", "is_contiguous", "element_size")


class Lazy(torch.Tensor):
    @staticmethod
    def of(A: torch.Tensor, B: torch.Tensor) -> "Lazy":
        made = torch.empty_like(A).as_subclass(Lazy)
        made.factors = (A, B)
        return made

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            for each in args if function.__name__ not in FORM else ():
                if isinstance(each, Lazy) and each.factors is not None:
                    factors, each.factors = each.factors, None
                    each.copy_(torch.tril(torch.matmul(*factors)))
            return function(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return Lazy.of(A, B)
