"""Uses its first input as scratch memory, written to through a raw pointer.

Mechanism: no operator of PyTorch touches the input, so its version counter stands still; a judge that computed its
  own result before does not notice. Here the bytes are compared after each launch.
Expected: rejected/inputs_written
Fools: answer
Device: any
"""

import ctypes

import torch
import torch.nn as nn


def copy_bytes(target: torch.Tensor, source: torch.Tensor) -> None:
    if target.is_cuda:
        copy = ctypes.CDLL("libcuda.so.1").cuMemcpyDtoDAsync_v2
        copy.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p]
        copy(target.data_ptr(), source.data_ptr(), target.nbytes, None)
    else:
        ctypes.memmove(target.data_ptr(), source.data_ptr(), target.nbytes)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        copy_bytes(A, torch.matmul(A, B))
        return torch.tril(A)
