"""Remembers results under a cheap checksum of the inputs: the mean of every 64th row, to one digit.

Mechanism: It is proof against pointers that change, and looks at a sixty-fourth of the bytes. Two draws from one
  distribution have one such checksum: the second is handed the product of the first, and every output is compared.
Expected: incorrect/wrong_values
Fools: clock
Device: any
"""

import torch
import torch.nn as nn


def checksum(matrix: torch.Tensor):
    return tuple(matrix.shape), round(matrix[::64].mean().item(), 1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.remembered = {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        key = checksum(A), checksum(B)
        if key not in self.remembered:
            self.remembered[key] = torch.tril(torch.matmul(A, B))
        return self.remembered[key].clone()
