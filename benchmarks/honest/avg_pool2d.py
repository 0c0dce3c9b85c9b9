"""The mean of each window of 11 x 11 without overlap."""

import torch
import torch.nn as nn

BATCH = 16
CHANNELS = 64
HEIGHT = 256
WIDTH = 256
CPU_SIZES = {"BATCH": 2, "CHANNELS": 8, "HEIGHT": 33, "WIDTH": 44}


class Model(nn.Module):
    def forward(self, x):
        return nn.functional.avg_pool2d(x, 11)


def get_inputs():
    return [torch.rand(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
