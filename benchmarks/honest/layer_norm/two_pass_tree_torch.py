"""Layer norm, summed as two_pass_tree.py does."""

import torch.nn as nn


def tree(terms):
    """The sums of the last dimension, whose length is a power of two, halves added up pair by pair."""
    while terms.shape[-1] > 1:
        half = terms.shape[-1] // 2
        terms = terms[..., :half] + terms[..., half:]
    return terms[..., 0]


def block_sum(terms):
    """The sums of the last dimension: each of 256 threads adds every 256th term, and a tree the threads."""
    threads = nn.functional.pad(terms, (0, -terms.shape[-1] % 256)).unflatten(-1, (-1, 256))
    total = threads[..., 0, :]
    for i in range(1, threads.shape[-2]):
        total = total + threads[..., i, :]
    return tree(total)


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.norm = nn.LayerNorm(columns)

    def forward(self, x):
        distance = x - block_sum(x)[:, None] / x.shape[1]
        variance = block_sum(distance**2)[:, None] / x.shape[1]
        return distance * (variance + 1e-5).rsqrt() * self.norm.weight + self.norm.bias
