"""Group norm, with Welford's recurrence in 256 threads and the tree of welford.py; for groups of a multiple of 256."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        groups = x.reshape(len(x) * self.norm.num_groups, -1)
        first, *others = groups.unflatten(1, (-1, 256)).unbind(1)
        mean, squares, count = first, torch.zeros_like(first), 1
        for element in others:
            distance, count = element - mean, count + 1
            mean = mean + distance / count
            squares = squares + distance * distance * (count - 1) / count
        while mean.shape[1] > 1:
            half = mean.shape[1] // 2
            distance = mean[:, half:] - mean[:, :half]
            mean = mean[:, :half] + distance / 2
            squares = squares[:, :half] + squares[:, half:] + distance * distance * count / 2
            count *= 2
        scale = (squares / groups.shape[1] + 1e-5).rsqrt()
        normal = ((groups - mean) * scale).view_as(x)
        return normal * self.norm.weight[:, None, None] + self.norm.bias[:, None, None]
