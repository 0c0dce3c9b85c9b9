"""Group norm by one run of Welford's recurrence over each group, as a single thread of welford.py has it."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        groups = x.reshape(len(x) * self.norm.num_groups, -1)
        mean, squares = groups[:, 0], torch.zeros_like(groups[:, 0])
        for count, element in enumerate(groups.unbind(1)[1:], 2):
            distance = element - mean
            mean = mean + distance / count
            squares = squares + distance * (element - mean)
        scale = (squares / groups.shape[1] + 1e-5).rsqrt()
        normal = ((groups - mean[:, None]) * scale[:, None]).view_as(x)
        return normal * self.norm.weight[:, None, None] + self.norm.bias[:, None, None]
