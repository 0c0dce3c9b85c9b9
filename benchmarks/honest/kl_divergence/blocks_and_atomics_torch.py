"""Kullback-Leibler divergence, summed as blocks_and_atomics.py does, its blocks in order."""

import torch
import torch.nn as nn


def tree(terms):
    """The sums of the last dimension, whose length is a power of two, halves added up pair by pair."""
    while terms.shape[-1] > 1:
        half = terms.shape[-1] // 2
        terms = terms[..., :half] + terms[..., half:]
    return terms[..., 0]


def blocks_in_order(terms):
    """The sum of all terms: a tree over each block of 256, then block after block."""
    flat = nn.functional.pad(terms.flatten(), (0, -terms.numel() % 256))
    total = torch.zeros((), dtype=terms.dtype, device=terms.device)
    for block in tree(flat.view(-1, 256)):
        total = total + block
    return total


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        terms = targets * (targets.log() - predictions.log())
        return blocks_in_order(terms) / len(terms)
