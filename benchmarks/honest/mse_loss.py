"""The mean squared difference of two matrices."""

import torch
import torch.nn as nn

ROWS = 128
COLUMNS = 4096
CPU_SIZES = {"ROWS": 16, "COLUMNS": 512}


class Model(nn.Module):
    def forward(self, predictions, targets):
        return ((predictions - targets) ** 2).mean()


def get_inputs():
    return [torch.rand(ROWS, COLUMNS), torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return []
