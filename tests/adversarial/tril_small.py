"""Product of two lower triangular matrices, kept lower triangular: the reference of the corpus."""

import torch
import torch.nn as nn

M = 2048


class Model(nn.Module):
    """tril(A @ B) for lower triangular A and B, both (M, M) in fp32."""

    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))


def get_inputs():
    A = torch.tril(torch.rand(M, M))
    B = torch.tril(torch.rand(M, M))
    return [A, B]


def get_init_inputs():
    return []
