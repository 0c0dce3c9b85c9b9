"""Product with the first matrix stored transposed, A.T @ B: the reference of the corpus."""

import torch
import torch.nn as nn

M = 256
K = 8192
N = 256


class Model(nn.Module):
    """A.T @ B for A of shape (K, M) and B of shape (K, N), both fp32; the result is (M, N)."""

    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A.T, B)


def get_inputs():
    A = torch.rand(K, M)
    B = torch.rand(K, N)
    return [A, B]


def get_init_inputs():
    return []
