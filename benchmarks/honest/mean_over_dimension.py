"""The mean along the middle dimension."""

import torch
import torch.nn as nn

BATCH = 64
LENGTH = 4096
WIDTH = 128
CPU_SIZES = {"BATCH": 2, "LENGTH": 256, "WIDTH": 32}


class Model(nn.Module):
    def forward(self, x):
        return x.mean(dim=1)


def get_inputs():
    return [torch.rand(BATCH, LENGTH, WIDTH)]


def get_init_inputs():
    return []
