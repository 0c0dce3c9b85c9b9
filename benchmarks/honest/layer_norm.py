"""Layer norm along rows, with a weight and a bias for each column."""

import torch
import torch.nn as nn

ROWS = 64
COLUMNS = 65536
CPU_SIZES = {"ROWS": 8, "COLUMNS": 1024}


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.norm = nn.LayerNorm(columns)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS]
