"""128 x 128 tiles of C = tril(A @ B) in Triton on tensor cores: three TF32 products for each fp32 one.

Over triton_ieee: `input_precision="tf32x3"`. Tensor cores cut off bits of a long sum, so a product of 32 of k is
a sum of its own, added to the total outside. The factor of 1 keeps Triton from making one long sum of it after all.

    C tile (rows r.., columns c..) = sum over k = c .. r + 127      above the diagonal: no k, only zeros

Limits: Triton chooses the instructions. Any M; masks cover the ragged edge.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK_M = 128
BLOCK_N = 128
BLOCK_K = 32
SHORTEST = 64  # a sum of fewer products has nothing to average out the 2^-23 that two halves miss of a value


@triton.jit
def tril_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, one, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    # The heaviest tiles, those of the bottom rows, start first.
    first_row = (tl.num_programs(1) - 1 - tl.program_id(1)) * BLOCK_M
    first_column = tl.program_id(0) * BLOCK_N
    rows = first_row + tl.arange(0, BLOCK_M)
    columns = first_column + tl.arange(0, BLOCK_N)
    row_starts = rows[:, None].to(tl.int64) * M

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    last_k = tl.minimum(first_row + BLOCK_M, M)
    for first_k in range(first_column, last_k, BLOCK_K):
        ks = first_k + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + row_starts + ks[None, :], mask=(rows < M)[:, None] & (ks < M)[None, :], other=0.0)
        b = tl.load(
            b_ptr + ks[:, None].to(tl.int64) * M + columns[None, :],
            mask=(ks < M)[:, None] & (columns < M)[None, :],
            other=0.0,
        )
        accumulator += one * tl.dot(a, b, input_precision=PRECISION)

    lower = tl.where(rows[:, None] >= columns[None, :], accumulator, 0.0)
    tl.store(c_ptr + row_starts + columns[None, :], lower, mask=(rows < M)[:, None] & (columns < M)[None, :])


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        require(A.is_cuda and B.device == A.device, "A and B must be on the same CUDA device")
        require(A.dtype == torch.float32 and B.dtype == torch.float32, "A and B must be float32")
        require(A.dim() == 2 and A.shape[0] == A.shape[1], "A must be a square matrix")
        require(B.shape == A.shape, "B must have the shape of A")
        require(A.is_contiguous() and B.is_contiguous(), "A and B must be contiguous")
        M = A.shape[0]
        C = torch.empty_like(A)
        if M == 0:
            return C
        precision = "tf32x3" if M >= SHORTEST else "ieee"
        grid = (triton.cdiv(M, BLOCK_N), triton.cdiv(M, BLOCK_M))
        with torch.cuda.device(A.device):
            tril_matmul_kernel[grid](
                A, B, C, M, 1.0, BLOCK_M, BLOCK_N, BLOCK_K, precision, num_warps=8, num_stages=3
            )
        return C
