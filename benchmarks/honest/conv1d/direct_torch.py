"""A convolution along lines: channel after channel and tap after tap as in direct.py."""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv1d(channels_in, channels_out, 3)

    def forward(self, x):
        length = x.shape[2] - 2
        total = self.conv.bias[:, None].expand(len(x), -1, length)
        for channel in range(x.shape[1]):
            for tap in range(3):
                line = x[:, channel, tap : tap + length].unsqueeze(1)
                total = total + self.conv.weight[:, channel, tap, None] * line
        return total
