"""A convolution of volumes with kernels of 3 x 3 x 3."""

import torch
import torch.nn as nn

BATCH = 4
CHANNELS_IN = 32
CHANNELS_OUT = 32
DEPTH = 24
HEIGHT = 32
WIDTH = 32
CPU_SIZES = {"BATCH": 1, "CHANNELS_IN": 8, "CHANNELS_OUT": 4, "DEPTH": 6, "HEIGHT": 8, "WIDTH": 8}


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv3d(channels_in, channels_out, 3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.rand(BATCH, CHANNELS_IN, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
