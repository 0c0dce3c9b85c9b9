"""Compiles its kernel with Numba, from a Python function, at its first call.

Mechanism: no extension is built. The kernel bears the function's name, with its module before it and Numba's tags behind.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom
Needs: numba.cuda
"""

import numpy as np
import torch
import torch.nn as nn
from numba import cuda


@cuda.jit
def tril_by_numba(A, B, C, M):
    j, i = cuda.grid(2)
    if i < M and j < M:
        total = np.float32(0.0)
        for k in range(j, i + 1):
            total += A[i, k] * B[k, j]
        C[i, j] = total


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        M = A.shape[0]
        tiles = (M + 15) // 16
        stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
        tril_by_numba[(tiles, tiles), (16, 16), stream](A, B, C, M)
        return C
