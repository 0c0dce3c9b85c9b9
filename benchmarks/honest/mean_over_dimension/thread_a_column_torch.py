"""The mean along the middle dimension, summed as thread_a_column.py does."""

import torch
import torch.nn as nn


def in_order(terms):
    """The sums of the last dimension, term after term."""
    total = torch.zeros_like(terms[..., 0])
    for term in terms.unbind(-1):
        total = total + term
    return total


class ModelNew(nn.Module):
    def forward(self, x):
        return in_order(x.transpose(1, 2)) / x.shape[1]
