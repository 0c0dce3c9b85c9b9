"""The mean hinge loss of scores whose targets are 1 and -1, one for each column."""

import torch
import torch.nn as nn

ROWS = 128
COLUMNS = 4096
CPU_SIZES = {"ROWS": 16, "COLUMNS": 512}


class Model(nn.Module):
    def forward(self, scores, targets):
        return (1 - scores * targets).clamp(min=0).mean()


def get_inputs():
    signs = 2 * torch.randint(0, 2, (COLUMNS,)).float() - 1
    return [torch.rand(ROWS, COLUMNS), signs]


def get_init_inputs():
    return []
