"""Returns an object whose unpickling runs code, where the reference returns a tensor.

Mechanism: a judge that gets results through a queue, a pool or torch.save unpickles them in its own process, and the
  code says so there. Across the wall go bytes and JSON.
Expected: incorrect/wrong_type
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class Result:
    def __reduce__(self):
        return print, ("the code of a pickle has run",)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> Result:
        return Result()
