"""A kernel that writes far outside everything that was allocated.

Mechanism: the context is beyond repair, and with it every later call of the process: a player says so
  and leaves, and the referee's own context never noticed.
Expected: crashed/cuda_error
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void illegal_access_kernel(const float* A, const float* B, float* C, int M) {
  C[(1ll << 44) + threadIdx.x] = A[0] + B[0];
}

extern "C" void illegal_access(long long A, long long B, long long C, int M, long long stream) {
  illegal_access_kernel<<<1, 32, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M);
}
"""

CPP_SOURCE = r"""
#include <pybind11/pybind11.h>
extern "C" void illegal_access(long long A, long long B, long long C, int M, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("illegal_access", &illegal_access); }
"""

extension = load_inline("illegal_access", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        stream = torch.cuda.current_stream().cuda_stream
        extension.illegal_access(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], stream)
        return C
