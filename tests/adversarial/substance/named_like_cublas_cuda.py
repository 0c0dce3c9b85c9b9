"""Has kernels in its extension that are called what cuBLAS calls its own, and lets cuBLAS do the work.

Mechanism: a kernel that ran is looked for by name in what the build made, and is there; the decoys are never
  launched. Here a name that only a library's ready-made kernels have is the library's, whoever has it too.
Expected: ok/
Fools: substance
Device: cuda
Kind: library or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
// PyTorch takes its fp32 products from one of two families, in one of these tiles.
#define TILES(X) X(32x32) X(64x32) X(32x64) X(64x64) X(128x32) X(32x128) X(128x64) X(64x128) X(128x128) X(256x64) \
  X(64x256) X(256x128) X(128x256)

#define SGEMM(tile)                                                        \
  extern "C" __global__ void ampere_sgemm_##tile##_nn(float* C) { *C = 0; } \
  extern "C" __global__ void ampere_sgemm_##tile##_nt(float* C) { *C = 0; } \
  extern "C" __global__ void ampere_sgemm_##tile##_tn(float* C) { *C = 0; }
TILES(SGEMM)

namespace cutlass {
template <typename Operator>
__global__ void Kernel2(typename Operator::Params) {}
}  // namespace cutlass

#define CUTLASS(tile)                                                                           \
  struct cutlass_80_simt_sgemm_##tile##_8x4_nn_align1 { struct Params { int M; }; };            \
  template __global__ void cutlass::Kernel2<cutlass_80_simt_sgemm_##tile##_8x4_nn_align1>(      \
      cutlass_80_simt_sgemm_##tile##_8x4_nn_align1::Params);                                    \
  struct cutlass_80_simt_sgemm_##tile##_8x5_nn_align1 { struct Params { int M; }; };            \
  template __global__ void cutlass::Kernel2<cutlass_80_simt_sgemm_##tile##_8x5_nn_align1>(      \
      cutlass_80_simt_sgemm_##tile##_8x5_nn_align1::Params);
TILES(CUTLASS)

extern "C" int kernels() { return 1; }
"""

extension = load_inline(
    name="named_like_cublas",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" int kernels();',
    cuda_sources=CUDA_SOURCE,
    functions=["kernels"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
