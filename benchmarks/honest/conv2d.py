"""A convolution of images with kernels of 3 x 3."""

import torch
import torch.nn as nn

BATCH = 16
CHANNELS_IN = 64
CHANNELS_OUT = 64
HEIGHT = 64
WIDTH = 64
CPU_SIZES = {"BATCH": 2, "CHANNELS_IN": 8, "CHANNELS_OUT": 8, "HEIGHT": 12, "WIDTH": 12}


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.rand(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
