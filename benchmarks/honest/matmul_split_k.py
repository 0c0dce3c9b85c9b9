"""The product of two matrices that share a long side."""

import torch
import torch.nn as nn

M = 256
K = 16384
N = 256
CPU_SIZES = {"M": 32, "K": 1024, "N": 32}


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
