"""Kullback-Leibler divergence, summed as thread_a_row.py does."""

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
        terms = targets * (targets.log() - predictions.log())
        return in_order(terms).sum() / len(terms)
