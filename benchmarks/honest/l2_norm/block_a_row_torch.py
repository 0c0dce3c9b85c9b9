"""Rows over their Euclidean norm, summed as block_a_row.py does."""

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
    def forward(self, x):
        return x / block_sum(x * x).sqrt()[:, None]
