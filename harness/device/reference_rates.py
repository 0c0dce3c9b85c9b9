"""Two known rates, measured before a run so that rows of different days can be set against each other.

The copy bandwidth moves with the memory's clock, the rate of fp32 multiply-adds with the SMs'; neither depends on
PyTorch's version (on a CPU the second is a small matrix product of PyTorch's, which does).
"""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable

import torch

from harness.protocol import cuda_driver, nvrtc
from harness.protocol.clocks.stopwatch import Stopwatch

_THREADS, _BLOCKS_PER_SM = 256, 8  # a full SM of 2048 threads
_CHAINS, _UNROLLED, _LOOPS = 8, 16, 2000  # about 2 ms on an SM with 128 fp32 units
_WARM, _TRIES = 10, 15
_PRODUCT_SIZE = 512
# Eight chains a thread, so that no multiply-add waits for the one before; the store is never made, but not provably so.
_SOURCE = r"""
extern "C" __global__ void multiply_add(float* sink, int loops, float factor, float term) {
    float chain[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) chain[i] = (float)(threadIdx.x + i);
    for (int loop = 0; loop < loops; ++loop) {
#pragma unroll
        for (int step = 0; step < 16; ++step) {
#pragma unroll
            for (int i = 0; i < 8; ++i) chain[i] = fmaf(chain[i], factor, term);
        }
    }
    float sum = 0.f;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += chain[i];
    if (sum == -1.f) *sink = sum;
}
"""


def copy_gbytes_s(
    device: torch.device, size_bytes: int, stopwatch: Stopwatch, synchronize: Callable[[], None], tries: int
) -> float:
    """Copy bandwidth on `device` in 10⁹ bytes/s, counting bytes read and written; the median but for two warm-ups."""
    words = size_bytes // 4
    source = torch.ones(words, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    times_us = [_time_us(lambda: target.copy_(source), stopwatch, synchronize) for _ in range(tries)]
    return 8.0 * words / statistics.median(times_us[2:]) / 1e3


def gpu_multiply_add_tflops(
    properties: object, device: torch.device, stopwatch: Stopwatch, synchronize: Callable[[], None]
) -> float:
    """Rate of fp32 multiply-adds in 10¹² operations/s (two for each), all SMs busy; `properties` are PyTorch's."""
    cubin = nvrtc.compile_cubin(_SOURCE, properties.major, properties.minor)
    blocks = _BLOCKS_PER_SM * properties.multi_processor_count
    types = (ctypes.c_uint64, ctypes.c_int, ctypes.c_float, ctypes.c_float)
    kernel = cuda_driver.Kernel(cubin, "multiply_add", blocks, _THREADS, types)
    sink = torch.zeros(1, device=device)
    stream = torch.cuda.current_stream(device).cuda_stream

    def run() -> None:
        kernel.launch(stream, sink.data_ptr(), _LOOPS, 0.999, 0.001)

    times_us = [_time_us(run, stopwatch, synchronize) for _ in range(_WARM + _TRIES)]
    operations = 2.0 * _CHAINS * _UNROLLED * _LOOPS * _THREADS * blocks
    return operations / statistics.median(times_us[_WARM:]) / 1e6


def cpu_multiply_add_tflops(stopwatch: Stopwatch) -> float:
    """Rate of a small fp32 matrix product in 10¹² operations/s, on all of PyTorch's threads."""
    a, b = torch.ones(2, _PRODUCT_SIZE, _PRODUCT_SIZE).mul_(0.5)
    out = torch.empty_like(a)
    times_us = [_time_us(lambda: torch.mm(a, b, out=out), stopwatch, lambda: None) for _ in range(_WARM + _TRIES)]
    return 2.0 * _PRODUCT_SIZE**3 / statistics.median(times_us[_WARM:]) / 1e6


def _time_us(call: Callable[[], object], stopwatch: Stopwatch, synchronize: Callable[[], None]) -> float:
    mark = stopwatch.start()
    call()
    lap = stopwatch.stop(mark)
    synchronize()
    return stopwatch.microseconds(lap)
