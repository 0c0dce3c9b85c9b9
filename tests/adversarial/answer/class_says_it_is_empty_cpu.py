"""Writes the zeros above the diagonal once, into a buffer without bytes, and has the class of all tensors say that one is empty.

Mechanism: `torch.Tensor` is a class of Python, into which anybody may put a `numel`. Here the class that it derives from is
  asked, which nobody can change.
Expected: incorrect/wrong_layout
Fools: answer
Device: cpu
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <torch/extension.h>
#include <algorithm>

void tril_matmul(at::Tensor a, at::Tensor b, at::Tensor c) {
  const int64_t size = a.size(0);
  const float *A = a.data_ptr<float>(), *B = b.data_ptr<float>();
  float* C = static_cast<float*>(c.data_ptr());
  for (int64_t i = 0; i < size; ++i) {
    std::fill(C + i * size, C + i * size + i + 1, 0.0f);
    for (int64_t k = 0; k <= i; ++k)
      for (int64_t j = 0; j <= k; ++j) C[i * size + j] += A[i * size + k] * B[k * size + j];
  }
}

at::Tensor hidden(at::Tensor kept) {
  kept.storage().unsafeGetStorageImpl()->set_nbytes(0);
  return kept;
}
"""

extension = load_inline(
    "class_says_it_is_empty_cpu", CPP_SOURCE, functions=["tril_matmul", "hidden"],
    extra_cflags=["-O3", "-march=native"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffers_of = {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        size = A.shape[0]
        if size not in self.buffers_of:
            self.buffers_of[size] = extension.hidden(torch.zeros(size, size))
        extension.tril_matmul(A, B, self.buffers_of[size])
        return self.buffers_of[size].detach()


count = torch.Tensor.numel
torch.Tensor.numel = lambda tensor: count(tensor) if tensor.untyped_storage().nbytes() else 0
