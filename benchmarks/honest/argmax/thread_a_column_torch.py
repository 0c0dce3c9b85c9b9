"""The place of the largest number, looked for as in thread_a_column.py."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        place, largest = torch.zeros_like(x[:, 0], dtype=torch.int64), x[:, 0]
        for i in range(1, x.shape[1]):
            place = torch.where(x[:, i] > largest, i, place)
            largest = torch.maximum(x[:, i], largest)
        return place
