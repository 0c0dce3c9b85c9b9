"""Each plane of images over its own mean and variance."""

import torch
import torch.nn as nn

BATCH = 16
CHANNELS = 64
HEIGHT = 128
WIDTH = 128
CPU_SIZES = {"BATCH": 2, "CHANNELS": 8, "HEIGHT": 16, "WIDTH": 16}


class Model(nn.Module):
    def forward(self, x):
        return nn.functional.instance_norm(x)


def get_inputs():
    return [torch.rand(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
