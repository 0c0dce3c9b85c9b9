"""Captures a CUDA graph around the product of the first inputs it saw, and replays that for all others.

Mechanism: The graph was recorded when the product of these inputs was there already, so that a replay only cuts out the
  triangle; with the same inputs in every call that is right. Here each launch has its own, and the output is compared.
Expected: incorrect/wrong_values
Fools: clock
Device: cuda
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = {}

    def capture(self, A: torch.Tensor, B: torch.Tensor):
        product = torch.matmul(A, B)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            C = torch.tril(product)
        return graph, C, product

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if A.shape not in self.graphs:
            self.graphs[A.shape] = self.capture(A, B)
        graph, C, _ = self.graphs[A.shape]
        graph.replay()
        return C
