"""Max pooling: the nine places of a window, one after the other as in thread_a_window.py."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        height, width = x.shape[2:]
        padded = nn.functional.pad(x, (1, 1, 1, 1), value=-torch.inf)
        largest = padded[:, :, :height, :width]
        for place in range(1, 9):
            y, z = divmod(place, 3)
            largest = torch.maximum(largest, padded[:, :, y : y + height, z : z + width])
        return largest
