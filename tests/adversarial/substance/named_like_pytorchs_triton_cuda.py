"""Multiplies with PyTorch's own Triton kernel for sparse blocks, and has one of that name that stores a zero.

Mechanism: the names of both are the same, and device code of both is in the candidate's cache, compiled in its process.
  What PyTorch brings is in its own text; a name that it has there is nobody's own.
Expected: ok/ or imprecise/reduced_precision
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch.sparse._triton_ops import bsr_dense_addmm


@triton.jit
def _bsr_strided_addmm_kernel(x_ptr):
    tl.store(x_ptr, 0.0)


BLOCK = 64


def blocks_of(A: torch.Tensor) -> torch.Tensor:
    """A as a matrix of blocks of which none is left out."""
    count = A.shape[0] // BLOCK
    values = A.view(count, BLOCK, count, BLOCK).transpose(1, 2).reshape(-1, BLOCK, BLOCK)
    rows = torch.arange(0, count * count + 1, count, device=A.device)
    columns = torch.arange(count, device=A.device).repeat(count)
    return torch.sparse_bsr_tensor(rows, columns, values, A.shape, check_invariants=False)


def product(A: torch.Tensor, B: torch.Tensor, out: torch.Tensor, beta: int) -> None:
    bsr_dense_addmm(out, blocks_of(A), B, beta=beta, out=out)


def high(A: torch.Tensor) -> torch.Tensor:
    return (A.view(torch.int32) & -8192).view(torch.float32)  # the bits that TF32 keeps


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if A.shape[0] % BLOCK:
            return torch.tril(torch.matmul(A, B))
        _bsr_strided_addmm_kernel[(1,)](torch.empty(1, device=A.device))
        C = torch.empty_like(A)
        A_high, B_high = high(A), high(B)
        product(A - A_high, B_high, C, 0)
        product(A_high, B - B_high, C, 1)
        product(A_high, B_high, C, 1)
        return C.tril_()
