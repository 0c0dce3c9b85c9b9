"""Calls cuBLAS in a green context, which has a share of the GPU's multiprocessors, beside a decoy of its own.

Mechanism: kernels of another context are launched by the same calls; whether a recorder lists them is asked here.
Expected: ok/
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <cstdio>

__global__ void tril_lower(const float* P, float* C, int M) {
  const long long count = (long long)M * M;
  for (long long at = blockIdx.x * 256ll + threadIdx.x; at < count; at += gridDim.x * 256ll) {
    C[at] = at / M >= at % M ? P[at] : 0.0f;
  }
}

template <typename Function> static Function driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion(name, &found, 12080, cudaEnableDefault, &result);
  return reinterpret_cast<Function>(found);
}

using Sgemm = int (*)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int, const float*, float*, int);
static CUcontext green;
static CUstream side;
static void* handle;
static Sgemm sgemm;
static cudaEvent_t began, ended;

#define TRY(call) do { const int code = (int)(call); if (code != 0) { fprintf(stderr, "line %d: %d\n", __LINE__, code); return __LINE__ * 1000 + code; } } while (0)

extern "C" int open() {
  CUdevice device;
  CUdevResource all, part;
  unsigned groups = 1;
  CUdevResourceDesc description;
  CUgreenCtx context;
  TRY(driver<decltype(&cuDeviceGet)>("cuDeviceGet")(&device, 0));
  TRY(driver<decltype(&cuDeviceGetDevResource)>("cuDeviceGetDevResource")(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  TRY(driver<decltype(&cuDevSmResourceSplitByCount)>("cuDevSmResourceSplitByCount")(&part, &groups, &all, nullptr, 0, 120));
  TRY(driver<decltype(&cuDevResourceGenerateDesc)>("cuDevResourceGenerateDesc")(&description, &part, 1));
  TRY(driver<decltype(&cuGreenCtxCreate)>("cuGreenCtxCreate")(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  TRY(driver<decltype(&cuCtxFromGreenCtx)>("cuCtxFromGreenCtx")(&green, context));
  TRY(driver<decltype(&cuGreenCtxStreamCreate)>("cuGreenCtxStreamCreate")(&side, context, CU_STREAM_NON_BLOCKING, 0));
  void* library = dlopen("libcublas.so.13", RTLD_NOW);
  if (library == nullptr) library = dlopen("libcublas.so.12", RTLD_NOW);
  auto create = reinterpret_cast<int (*)(void**)>(dlsym(library, "cublasCreate_v2"));
  auto on_stream = reinterpret_cast<int (*)(void*, cudaStream_t)>(dlsym(library, "cublasSetStream_v2"));
  sgemm = reinterpret_cast<Sgemm>(dlsym(library, "cublasSgemm_v2"));
  TRY(driver<decltype(&cuCtxPushCurrent)>("cuCtxPushCurrent")(green));
  const int created = create(&handle), set = on_stream(handle, side);
  CUcontext popped;
  TRY(driver<decltype(&cuCtxPopCurrent)>("cuCtxPopCurrent")(&popped));
  TRY(created);
  TRY(set);
  TRY(cudaEventCreateWithFlags(&began, cudaEventDisableTiming));
  TRY(cudaEventCreateWithFlags(&ended, cudaEventDisableTiming));
  return 0;
}

extern "C" int launch(long long A, long long B, long long P, long long C, int M) {
  static auto push = driver<decltype(&cuCtxPushCurrent)>("cuCtxPushCurrent");
  static auto pop = driver<decltype(&cuCtxPopCurrent)>("cuCtxPopCurrent");
  static auto wait = driver<decltype(&cuStreamWaitEvent)>("cuStreamWaitEvent");
  static auto record = driver<decltype(&cuEventRecord)>("cuEventRecord");
  const float one = 1.0f, zero = 0.0f;
  TRY(cudaEventRecord(began, 0));
  CUcontext popped;
  TRY(push(green));
  const int waited = wait(side, began, 0);
  const int done = sgemm(handle, 0, 0, M, M, M, &one, (const float*)B, M, (const float*)A, M, &zero, (float*)P, M);
  const int marked = record(ended, side);
  TRY(pop(&popped));
  TRY(waited);
  TRY(done);
  TRY(marked);
  TRY(cudaStreamWaitEvent(0, ended, 0));
  tril_lower<<<528, 256>>>((const float*)P, (float*)C, M);
  return 0;
}
"""

extension = load_inline(
    name="in_a_green_context",
    cpp_sources=r"""
#include <pybind11/pybind11.h>
extern "C" int open();
extern "C" int launch(long long, long long, long long, long long, int);
""",
    cuda_sources=CUDA_SOURCE,
    functions=["open", "launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.opened = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if self.opened is None:
            torch.matmul(A, B)
            self.opened = extension.open()
        P, C = torch.empty_like(A), torch.empty_like(A)
        code = self.opened or extension.launch(A.data_ptr(), B.data_ptr(), P.data_ptr(), C.data_ptr(), A.shape[0])
        if code:
            raise RuntimeError(f"no green context: {code}")
        return C
