"""Starts its second kernel before its first has ended: programmatic dependent launch, the modern overlap of two.

Mechanism: the first kernel leaves partial sums in a workspace that is kept from call to call; the second sets
  itself up beside it and waits, with griddepcontrol, before it reads them. Both are within the events.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = """
__global__ void partial_kernel(const float* A, const float* B, float* partial, int M) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  for (int k = j + blockIdx.z; k <= i; k += 2) sum += A[i * M + k] * B[k * M + j];
  partial[(blockIdx.z * M + i) * M + j] = sum;
}

__global__ void add_kernel(const float* partial, float* C, int M) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  if (at < M * M) C[at] = partial[at] + partial[M * M + at];
}

extern "C" void product(long long A, long long B, long long C, long long partial, int M, long long stream) {
  const dim3 grid((M + 15) / 16, (M + 15) / 16, 2);
  float* sums = reinterpret_cast<float*>(partial);
  partial_kernel<<<grid, dim3(16, 16), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), sums, M);
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((M * M + 255) / 256);
  config.blockDim = dim3(256);
  config.stream = reinterpret_cast<cudaStream_t>(stream);
  config.attrs = &overlap;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, add_kernel, static_cast<const float*>(sums), reinterpret_cast<float*>(C), M);
}
"""

CPP_SOURCE = """
#include <pybind11/pybind11.h>
extern "C" void product(long long A, long long B, long long C, long long partial, int M, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("product", &product); }
"""

extension = load_inline("dependent_launch", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.workspaces = {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M = A.shape[0]
        if M not in self.workspaces:
            self.workspaces[M] = A.new_empty(2, M, M)
        C = torch.empty_like(A)
        stream = torch.cuda.current_stream().cuda_stream
        extension.product(A.data_ptr(), B.data_ptr(), C.data_ptr(), self.workspaces[M].data_ptr(), M, stream)
        return C
