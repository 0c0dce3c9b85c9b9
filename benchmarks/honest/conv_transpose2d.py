"""A transposed convolution of images with kernels of 3 x 3, two steps apart."""

import torch
import torch.nn as nn

BATCH = 16
CHANNELS_IN = 64
CHANNELS_OUT = 64
HEIGHT = 48
WIDTH = 48
CPU_SIZES = {"BATCH": 2, "CHANNELS_IN": 8, "CHANNELS_OUT": 8, "HEIGHT": 7, "WIDTH": 9}


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels_in, channels_out, 3, stride=2, padding=1)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.rand(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
