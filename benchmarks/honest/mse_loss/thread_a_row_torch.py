"""Mean squared error, summed as thread_a_row.py does."""

import torch
import torch.nn as nn


def in_order(terms):
    """The sums of the last dimension, term after term."""
    total = torch.zeros_like(terms[..., 0])
    for term in terms.unbind(-1):
        total = total + term
    return total


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        terms = (predictions - targets) ** 2
        return in_order(terms).sum() / terms.numel()
