"""A convolution along lines with kernels of 3."""

import torch
import torch.nn as nn

BATCH = 16
CHANNELS_IN = 128
CHANNELS_OUT = 128
LENGTH = 4096
CPU_SIZES = {"BATCH": 2, "CHANNELS_IN": 16, "CHANNELS_OUT": 8, "LENGTH": 64}


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv1d(channels_in, channels_out, 3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.rand(BATCH, CHANNELS_IN, LENGTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
