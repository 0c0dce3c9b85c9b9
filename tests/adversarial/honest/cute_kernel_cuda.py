"""Compiles its kernel with CuTe DSL, from a Python function, when it is constructed.

Mechanism: no extension is built. The kernel bears the function's name between CuTe DSL's own prefix and its arguments.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom
Needs: cutlass.cute and cuda.bindings
"""

import cuda.bindings.driver as driver
import cutlass.cute as cute
import torch
import torch.nn as nn
from cutlass import Float32
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def tril_by_cute(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    i = by * 16 + ty
    j = bx * 16 + tx
    if i < A.shape[0]:
        if j < A.shape[0]:
            total = Float32(0.0)
            for k in range(j, i + 1):
                total += A[i, k] * B[k, j]
            C[i, j] = total


@cute.jit
def launch(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, stream: driver.CUstream):
    tiles = (A.shape[0] + 15) // 16
    tril_by_cute(A, B, C).launch(grid=[tiles, tiles, 1], block=[16, 16, 1], stream=stream)


def of_any_size(tensor: torch.Tensor):
    return from_dlpack(tensor).mark_layout_dynamic(leading_dim=1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        example = [of_any_size(torch.zeros(16, 16, device="cuda")) for _ in range(3)]
        self.launch = cute.compile(launch, *example, driver.CUstream(torch.cuda.current_stream().cuda_stream))

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        self.launch(*map(of_any_size, (A, B, C)), driver.CUstream(torch.cuda.current_stream().cuda_stream))
        return C
