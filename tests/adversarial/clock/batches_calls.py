"""Collects the inputs of 64 calls, hands out empty tensors for them, and computes all in one batched product.

Mechanism: One batched launch costs less than 64, and a judge that makes fewer calls never has it made at all. Here the
  output of a launch is copied before the next one's inputs come: an empty tensor is what is compared.
Expected: incorrect/wrong_values or incorrect/not_finite
Fools: clock
Device: any
"""

import torch
import torch.nn as nn

BATCH = 64


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.checked, self.waiting, self.empty = False, [], []

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.checked:
            self.checked = True
            self.empty = list(A.new_empty(BATCH, *A.shape).unbind())
            return torch.tril(torch.matmul(A, B))
        C = self.empty.pop() if self.empty and self.empty[-1].shape == A.shape else torch.empty_like(A)
        self.waiting.append((A, B, C))
        if len(self.waiting) == BATCH:
            As, Bs, Cs = zip(*self.waiting)
            for place, product in zip(Cs, torch.tril(torch.bmm(torch.stack(As), torch.stack(Bs)))):
                place.copy_(product)
            self.waiting.clear()
        return C
