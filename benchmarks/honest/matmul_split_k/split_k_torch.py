"""A product that is split along its long side: each share in order, then the shares in order, as in split_k.py."""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        share = -(-a.shape[1] // 32)
        total = 0.0
        for first in range(0, a.shape[1], share):
            partial = 0.0
            for k in range(first, min(first + share, a.shape[1])):
                partial = partial + a[:, k, None] * b[k]
            total = total + partial
        return total
