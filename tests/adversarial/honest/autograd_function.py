"""Wraps its work in a torch.autograd.Function with a backward pass.

Mechanism: called without gradients, only its forward runs; what is returned is a plain tensor.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn


class LowerProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(A, B)
        return torch.tril(torch.matmul(A, B))

    @staticmethod
    def backward(ctx, gradient: torch.Tensor):
        A, B = ctx.saved_tensors
        gradient = torch.tril(gradient)
        return torch.matmul(gradient, B.T), torch.matmul(A.T, gradient)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return LowerProduct.apply(A, B)
