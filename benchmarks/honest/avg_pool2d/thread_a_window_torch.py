"""Average pooling: the 121 places of a window, one after the other as in thread_a_window.py."""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        across, down = x.shape[3] // 11, x.shape[2] // 11
        total = x.new_zeros(*x.shape[:2], down, across)
        for place in range(121):
            y, z = divmod(place, 11)
            total = total + x[:, :, y::11, z::11][:, :, :down, :across]
        return total / 121
