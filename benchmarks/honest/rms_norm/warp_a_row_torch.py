"""Rows over their root mean square, summed as warp_a_row.py does."""

import torch.nn as nn


def tree(terms):
    """The sums of the last dimension, whose length is a power of two, halves added up pair by pair."""
    while terms.shape[-1] > 1:
        half = terms.shape[-1] // 2
        terms = terms[..., :half] + terms[..., half:]
    return terms[..., 0]


def warp_sum(terms):
    """The sums of the last dimension: each of 32 lanes adds every 32nd term, and a tree the lanes."""
    lanes = nn.functional.pad(terms, (0, -terms.shape[-1] % 32)).unflatten(-1, (-1, 32))
    total = lanes[..., 0, :]
    for i in range(1, lanes.shape[-2]):
        total = total + lanes[..., i, :]
    return tree(total)


class ModelNew(nn.Module):
    def forward(self, x):
        return x * (warp_sum(x * x)[:, None] / x.shape[1] + 1e-5).rsqrt()
