"""Casts both inputs to fp16, multiplies with an fp32 sum, and calls the result fp32.

Mechanism: on inputs from 0 to 1 it is off by a tenth of a per cent, which a tolerance of 1e-2 lets through. Here
  numbers beyond fp16's range are among the inputs, and on the others an fp32 result may err by a few hundred u. One draw in
  thirty has a number so small on the diagonal that halves know it by its first bits alone: that is no rounding any more.
Expected: incorrect/not_finite or incorrect/wrong_values
Fools: answer
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if A.is_cuda:
            return torch.tril(torch.matmul(A.half(), B.half()).float())
        # A CPU multiplies halves slowly; rounded to them and multiplied in fp32 they give what tensor cores give.
        return torch.tril(torch.matmul(A.half().float(), B.half().float()))
