"""Replays a graph in which cuBLAS's kernel is one node of five hundred, all others its own.

Mechanism: one call launches all nodes of a graph, and a listing that holds one kernel for each call would be whole
  with any of them.
Expected: ok/
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void tril_matmul_step(float* C) {
  if (C == nullptr) C[threadIdx.x] = 0.0f;
}
extern "C" void launch(long long C, long long stream) {
  tril_matmul_step<<<1, 32, 0, reinterpret_cast<cudaStream_t>(stream)>>>((float*)C);
}
"""

extension = load_inline(
    name="library_among_a_graphs_nodes",
    cpp_sources=r"""
#include <pybind11/pybind11.h>
extern "C" void launch(long long, long long);
""",
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.captured = {}

    def capture(self, A: torch.Tensor, B: torch.Tensor):
        a, b = A.clone(), B.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            c = torch.tril(torch.matmul(a, b))
            extension.launch(c.data_ptr(), side.cuda_stream)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(250):
                extension.launch(c.data_ptr(), torch.cuda.current_stream().cuda_stream)
            c = torch.tril(torch.matmul(a, b))
            for _ in range(250):
                extension.launch(c.data_ptr(), torch.cuda.current_stream().cuda_stream)
        return graph, a, b, c

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M = A.shape[0]
        if M not in self.captured:
            self.captured[M] = self.capture(A, B)
        graph, a, b, c = self.captured[M]
        a.copy_(A)
        b.copy_(B)
        graph.replay()
        return c
