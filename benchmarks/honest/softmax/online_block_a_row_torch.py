"""Softmax by one running maximum and sum for each row, as a single thread of online_block_a_row.py has them."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        largest, total = x[:, 0], torch.ones_like(x[:, 0])
        for column in x.unbind(1)[1:]:
            both = torch.maximum(largest, column)
            total = total * (largest - both).exp() + (column - both).exp()
            largest = both
        return (x - largest[:, None]).exp() / total[:, None]
