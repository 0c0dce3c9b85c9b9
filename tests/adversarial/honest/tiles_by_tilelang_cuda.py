"""Compiles its kernel with TileLang, which writes CUDA from a Python function and has nvcc compile it.

Mechanism: no extension is built. The kernel bears the function's name with "_kernel" behind it.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom
Needs: tilelang
"""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn

M = T.dynamic("M")


@T.prim_func
def tril_by_tilelang(A: T.Tensor((M, M), "float32"), B: T.Tensor((M, M), "float32"), C: T.Tensor((M, M), "float32")):
    with T.Kernel(T.ceildiv(M, 16), T.ceildiv(M, 16), threads=256) as (bx, by):
        thread = T.get_thread_binding()
        i = by * 16 + thread // 16
        j = bx * 16 + thread % 16
        total = T.alloc_local((1,), "float32")
        total[0] = 0.0
        if i < M and j < M:
            for k in T.serial(j, i + 1):
                total[0] += A[i, k] * B[k, j]
            C[i, j] = total[0]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.product = tilelang.compile(tril_by_tilelang, target="cuda")

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        self.product(A, B, C)
        return C
