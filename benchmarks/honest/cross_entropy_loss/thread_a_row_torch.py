"""Mean cross entropy, summed as thread_a_row.py does."""

import torch
import torch.nn as nn


def in_order(terms):
    """The sums of the last dimension, term after term."""
    total = torch.zeros_like(terms[..., 0])
    for term in terms.unbind(-1):
        total = total + term
    return total


class ModelNew(nn.Module):
    def forward(self, logits, classes):
        largest = logits.amax(dim=1)
        sums = in_order((logits - largest[:, None]).exp())
        losses = sums.log() + largest - logits.gather(1, classes[:, None])[:, 0]
        return losses.mean()
