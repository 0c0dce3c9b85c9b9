"""Batch norm, summed as block_a_channel.py does."""

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
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, track_running_stats=False)

    def forward(self, x):
        channels = x.transpose(0, 1).flatten(1)
        distance = channels - block_sum(channels)[:, None] / channels.shape[1]
        scale = self.norm.weight * (block_sum(distance**2) / channels.shape[1] + 1e-5).rsqrt()
        normal = distance * scale[:, None] + self.norm.bias[:, None]
        return normal.view_as(x.transpose(0, 1)).transpose(0, 1).contiguous()
