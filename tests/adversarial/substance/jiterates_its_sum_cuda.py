"""Has PyTorch compile its elementwise loop around one line of the candidate's, and calls that a kernel of its own.

Mechanism: the text that is compiled is PyTorch's but for one function, whose name stands in the source.
Expected: ok/ or incorrect/raised
Fools: substance
Device: cuda
Kind: library or mixed or unknown
Problem: vector_sum
"""

import torch
import torch.nn as nn

CODE = "template <typename T> T sum_kernel(T a, T b) { return a + b; }"


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.function = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        self.function = self.function or torch.cuda.jiterator._create_jit_fn(CODE)
        return self.function(A, B)
