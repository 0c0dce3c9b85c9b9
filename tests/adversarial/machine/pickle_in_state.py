"""Carries an object in its state_dict whose unpickling runs code.

Mechanism: a judge that saves and loads states to compare them runs it. Of a state cross names, forms and the bytes of
  tensors; what is none is left out.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn


class Extra:
    def __reduce__(self):
        return print, ("the code of a pickle has run",)


class ModelNew(nn.Module):
    def get_extra_state(self) -> Extra:
        return Extra()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
