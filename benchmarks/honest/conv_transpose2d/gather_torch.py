"""A transposed convolution: tap after tap and channel after channel as in gather.py."""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels_in, channels_out, 3, stride=2, padding=1)

    def forward(self, x):
        height, width = x.shape[2:]
        total = self.conv.bias[:, None, None].repeat(len(x), 1, 2 * height + 1, 2 * width + 1)
        for tap in range(9):
            y, z = divmod(tap, 3)
            for channel in range(x.shape[1]):
                reached = total[:, :, y : y + 2 * height : 2, z : z + 2 * width : 2]
                reached += self.conv.weight[channel, :, y, z, None, None] * x[:, channel, None]
        return total[:, :, 1:-1, 1:-1].contiguous()
