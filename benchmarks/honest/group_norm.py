"""Group norm of images, with a weight and a bias for each channel."""

import torch
import torch.nn as nn

BATCH = 16
CHANNELS = 64
HEIGHT = 128
WIDTH = 128
GROUPS = 8
CPU_SIZES = {"BATCH": 2, "CHANNELS": 8, "HEIGHT": 16, "WIDTH": 16, "GROUPS": 2}


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.rand(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [GROUPS, CHANNELS]
