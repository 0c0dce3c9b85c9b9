"""Launches nothing in `forward`; `torch.cuda.synchronize`, patched, does what was left when the times are waited for.

Mechanism: Both events are recorded around nothing, and by the time anyone looks at the result somebody has
  synchronised. Here the output is copied in stream order behind the stop event, before the player waits for anything.
Expected: incorrect/wrong_values or incorrect/not_finite
Fools: clock
Device: cuda
"""

import torch
import torch.nn as nn

left = []


def after_the_work(wait):
    def patched(*args, **kwargs):
        while left:
            A, B, C = left.pop()
            C.copy_(torch.tril(torch.matmul(A, B)))
        return wait(*args, **kwargs)
    return patched


torch.cuda.synchronize = after_the_work(torch.cuda.synchronize)
torch.cuda.Event.synchronize = after_the_work(torch.cuda.Event.synchronize)
torch.cuda.Stream.synchronize = after_the_work(torch.cuda.Stream.synchronize)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.checked = False

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.checked:
            self.checked = True
            return torch.tril(torch.matmul(A, B))
        C = torch.empty_like(A)
        left.append((A, B, C))
        return C
