"""Returns a plain tensor that is still being computed, with methods of its own that wait for it.

Mechanism: No subclass to be found out: `numel`, `stride`, `clone`, `cpu` and others are set on the one instance, and
  whoever asks anything of the result waits there, after the clock has been stopped. Here asking comes before the next
  turn, where the referee's own clock sees it; a harness that asks the type instead finds the tensor unfinished.
Expected: rejected/clocks_disagree or rejected/below_floor or incorrect/wrong_values or incorrect/not_finite or unsure/noisy
Fools: clock
Device: any
"""

from concurrent.futures import Future, ThreadPoolExecutor

import torch
import torch.nn as nn

POOL = ThreadPoolExecutor(max_workers=1)
METHODS = (
    "numel", "stride", "size", "data_ptr", "untyped_storage", "clone", "cpu", "contiguous", "float", "double", "to",
)


def fill(A: torch.Tensor, B: torch.Tensor, C: torch.Tensor) -> None:
    with torch.no_grad():
        if not A.is_cuda:
            C.copy_(torch.tril(torch.matmul(A, B)))
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.default_stream())
        with torch.cuda.stream(side):
            C.copy_(torch.tril(torch.matmul(A, B)))
            side.synchronize()


def waiting(C: torch.Tensor, name: str, filled: Future):
    def method(*args, **kwargs):
        filled.result()
        return getattr(torch.Tensor, name)(C, *args, **kwargs)
    return method


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.checked = False

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.checked:
            self.checked = True
            return torch.tril(torch.matmul(A, B))
        C = torch.empty_like(A)
        filled = POOL.submit(fill, A, B, C)
        for name in METHODS:
            setattr(C, name, waiting(C, name, filled))
        return C
