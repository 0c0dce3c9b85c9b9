"""A convolution of each channel by itself: tap after tap as in direct.py."""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 7, padding=3, groups=channels, bias=False)

    def forward(self, x):
        height, width = x.shape[2:]
        padded = nn.functional.pad(x, (3, 3, 3, 3))
        total = 0.0
        for tap in range(49):
            y, z = divmod(tap, 7)
            total = total + self.conv.weight[:, 0, y, z, None, None] * padded[:, :, y : y + height, z : z + width]
        return total
