"""Scaled dot-product attention of several heads."""

import torch
import torch.nn as nn

BATCH = 4
HEADS = 8
LENGTH = 1024
WIDTH = 64
CPU_SIZES = {"BATCH": 1, "HEADS": 2, "LENGTH": 48, "WIDTH": 64}


class Model(nn.Module):
    def forward(self, queries, keys, values):
        return nn.functional.scaled_dot_product_attention(queries, keys, values)


def get_inputs():
    return [torch.randn(BATCH, HEADS, LENGTH, WIDTH) for _ in range(3)]


def get_init_inputs():
    return []
