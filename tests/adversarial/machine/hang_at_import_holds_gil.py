"""Never comes back from a call into C that it makes while it is imported, with the interpreter's lock held.

Mechanism: no other thread of that process runs any more, no signal handler, no timeout written in Python. The
  builder's deadline is kept in another process.
Expected: timed_out/load_timeout
Fools: nothing
Device: any
"""

import ctypes

import torch
import torch.nn as nn

# Unlike CDLL, PyDLL keeps the lock during the call.
ctypes.PyDLL(None).sleep(1_000_000)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
