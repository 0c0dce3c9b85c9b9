"""A convolution of images: channel after channel and tap after tap as in direct.py."""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)

    def forward(self, x):
        height, width = x.shape[2:]
        padded = nn.functional.pad(x, (1, 1, 1, 1))
        total = 0.0
        for channel in range(x.shape[1]):
            for tap in range(9):
                y, z = divmod(tap, 3)
                image = padded[:, channel, None, y : y + height, z : z + width]
                total = total + self.conv.weight[:, channel, y, z, None, None] * image
        return total + self.conv.bias[:, None, None]
