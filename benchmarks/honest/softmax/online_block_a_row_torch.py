"""Softmax, with the running maxima and sums of 256 threads and the tree of online_block_a_row.py; for multiples of 256."""

import torch
import torch.nn as nn


def merge(largest, total, other_largest, other_total):
    """The maximum and sum of two sets together."""
    both = torch.maximum(largest, other_largest)
    return both, total * (largest - both).exp() + other_total * (other_largest - both).exp()


class ModelNew(nn.Module):
    def forward(self, x):
        first, *others = x.unflatten(1, (-1, 256)).unbind(1)
        largest, total = first, torch.ones_like(first)
        for column in others:
            largest, total = merge(largest, total, column, torch.ones_like(column))
        while total.shape[1] > 1:
            half = total.shape[1] // 2
            largest, total = merge(largest[:, :half], total[:, :half], largest[:, half:], total[:, half:])
        return (x - largest).exp() / total
