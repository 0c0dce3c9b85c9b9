"""Overwrites the first bytes of CUDA's own functions for the time between events with a jump to one that says 1 µs.

Mechanism: Python and PyTorch are untouched; whoever asks the runtime (`cudaEventElapsedTime`) or the driver
  (`cuEventElapsedTime`), as PyTorch and the native stopwatch do, is lied to once for each call of its own. Here a time
  below 0.8 of the floor, the useful bytes and operations at the fastest rates there are, is refused before any other
  clock is asked.
Expected: rejected/below_floor
Fools: clock
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <pybind11/pybind11.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstring>
#include <initializer_list>

constexpr size_t kJump = 16;
using Elapsed = int (*)(float*, void*, void*);

struct Hook {
  unsigned char* code = nullptr;
  unsigned char original[kJump], jump[kJump];
  void write(const unsigned char* bytes) {
    std::memcpy(code, bytes, kJump);
    __builtin___clear_cache(reinterpret_cast<char*>(code), reinterpret_cast<char*>(code) + kJump);
  }
};

static Hook hooks[4];
static int own_calls = 0;

template <int n>
static int lying(float* ms, void* start, void* stop) {
  hooks[n].write(hooks[n].original);
  const int code = reinterpret_cast<Elapsed>(hooks[n].code)(ms, start, stop);
  hooks[n].write(hooks[n].jump);
  if (own_calls > 0 && code == 0) {
    --own_calls;
    *ms = 0.001f;
  }
  return code;
}

static void install(Hook& hook, void* code, Elapsed lie) {
  if (code == nullptr) return;
  hook.code = static_cast<unsigned char*>(code);
#if defined(__x86_64__)
  const unsigned char jump[kJump] = {0x48, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xE0, 0x90, 0x90, 0x90, 0x90};
  const size_t address_at = 2;  // mov rax, address; jmp rax
#else
  const unsigned char jump[kJump] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1F, 0xD6};
  const size_t address_at = 8;  // ldr x16, address; br x16
#endif
  std::memcpy(hook.original, hook.code, kJump);
  std::memcpy(hook.jump, jump, kJump);
  std::memcpy(hook.jump + address_at, &lie, sizeof lie);
  const uintptr_t page = sysconf(_SC_PAGESIZE), first = reinterpret_cast<uintptr_t>(code) & ~(page - 1);
  mprotect(reinterpret_cast<void*>(first), 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC);
  hook.write(hook.jump);
}

static void count() { ++own_calls; }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  void* runtime = nullptr;
  for (const char* name : {"libcudart.so.13", "libcudart.so.12"})
    if (runtime == nullptr) runtime = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  if (runtime != nullptr) {
    install(hooks[0], dlsym(runtime, "cudaEventElapsedTime"), &lying<0>);
    install(hooks[1], dlsym(runtime, "cudaEventElapsedTime_v2"), &lying<1>);
  }
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver != nullptr) {
    install(hooks[2], dlsym(driver, "cuEventElapsedTime"), &lying<2>);
    install(hooks[3], dlsym(driver, "cuEventElapsedTime_v2"), &lying<3>);
  }
  module.def("count", &count);
}
"""

extension = load_inline("hooked_elapsed_time", CPP, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        extension.count()
        return torch.tril(torch.matmul(A, B))
