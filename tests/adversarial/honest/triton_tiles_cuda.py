"""A plain Triton kernel: tiles of 32 x 32, products in IEEE fp32.

Mechanism: what Triton compiled lies in its cache, and its name is there; the kernel is the candidate's own.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tiles_kernel(a_ptr, b_ptr, c_ptr, M, TILE: tl.constexpr):
    first_row = tl.program_id(1) * TILE
    first_column = tl.program_id(0) * TILE
    rows = first_row + tl.arange(0, TILE)
    columns = first_column + tl.arange(0, TILE)
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for first_k in range(first_column, first_row + TILE, TILE):
        ks = first_k + tl.arange(0, TILE)
        a = tl.load(a_ptr + rows[:, None] * M + ks[None, :], mask=(rows < M)[:, None] & (ks < M)[None, :], other=0.0)
        b = tl.load(
            b_ptr + ks[:, None] * M + columns[None, :], mask=(ks < M)[:, None] & (columns < M)[None, :], other=0.0
        )
        sums = tl.dot(a, b, sums, input_precision="ieee")
    sums = tl.where(rows[:, None] >= columns[None, :], sums, 0.0)
    tl.store(c_ptr + rows[:, None] * M + columns[None, :], sums, mask=(rows < M)[:, None] & (columns < M)[None, :])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        tiles = triton.cdiv(A.shape[0], 32)
        tiles_kernel[(tiles, tiles)](A, B, C, A.shape[0], TILE=32)
        return C
