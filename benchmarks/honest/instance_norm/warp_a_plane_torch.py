"""Instance norm, summed as warp_a_plane.py does."""

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
        planes = x.flatten(2)
        distance = planes - warp_sum(planes)[..., None] / planes.shape[2]
        scale = (warp_sum(distance**2)[..., None] / planes.shape[2] + 1e-5).rsqrt()
        return (distance * scale).view_as(x)
