"""Passes off what `torch.compile` makes of the reference's own line as a fused kernel.

Mechanism: it is fast where the compiler is, and the product in it is a library's all the same. Here each kernel of
  a traced launch counts by its time, and what the compiler generates is not the candidate's.
Expected: ok/
Fools: substance
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn


# Which vectors a CPU has is asked by compiling a program for each, which takes longer than the kernel.
@torch.compile(dynamic=True, options={"cpp.vec_isa_ok": False})
def fused_kernel(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    return torch.tril(torch.matmul(A, B))


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return fused_kernel(A, B)
