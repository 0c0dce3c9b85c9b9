"""Asks for the inputs to stay in the L2: a persisting window over their memory, set on the stream of all launches.

Mechanism: Lines marked so survive a flush by ordinary writes, and the next call on the same memory finds its inputs
  warm. Here no part of the L2 is left for such lines and those there are reset before each queue; and what they would
  have sped up is a library's product, which has no rank.
Expected: ok/ or crashed/cuda_error
Fools: substance
Device: cuda
Kind: library
"""

import ctypes

import torch
import torch.nn as nn

PERSISTING_L2_LIMIT, ACCESS_POLICY_WINDOW, STREAMING, PERSISTING = 0x06, 1, 1, 2
MOST_PERSISTING_BYTES, LARGEST_WINDOW_BYTES = 108, 109


class Window(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t), ("hit_ratio", ctypes.c_float),
        ("on_hit", ctypes.c_int), ("on_miss", ctypes.c_int),
        ("rest_of_the_union", ctypes.c_char * 32),
    ]


def runtime() -> ctypes.CDLL:
    return ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.runtime = runtime()
        self.persisting_bytes, self.window_bytes = (
            self.attribute(each) for each in (MOST_PERSISTING_BYTES, LARGEST_WINDOW_BYTES)
        )
        self.runtime.cudaDeviceSetLimit(PERSISTING_L2_LIMIT, ctypes.c_size_t(self.persisting_bytes))
        self.runtime.cudaGetLastError()

    def attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.runtime.cudaDeviceGetAttribute(ctypes.byref(value), number, torch.cuda.current_device())
        return value.value

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        first, last = sorted([A.data_ptr(), B.data_ptr()])
        size_bytes = min(last - first + B.numel() * B.element_size(), self.window_bytes)
        hit_ratio = min(1.0, self.persisting_bytes / size_bytes)
        window = Window(first, size_bytes, hit_ratio, PERSISTING, STREAMING)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.runtime.cudaStreamSetAttribute(stream, ACCESS_POLICY_WINDOW, ctypes.byref(window))
        self.runtime.cudaGetLastError()  # a device without such lines is no reason to fail
        return torch.tril(torch.matmul(A, B))
