"""Mean triplet margin loss, summed as thread_a_row.py does."""

import torch
import torch.nn as nn


def in_order(terms):
    """The sums of the last dimension, term after term."""
    total = torch.zeros_like(terms[..., 0])
    for term in terms.unbind(-1):
        total = total + term
    return total


class ModelNew(nn.Module):
    def forward(self, anchor, positive, negative):
        near = in_order((anchor - positive + 1e-6) ** 2).sqrt()
        far = in_order((anchor - negative + 1e-6) ** 2).sqrt()
        return (near - far + 1).clamp(min=0).mean()
