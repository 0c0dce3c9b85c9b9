"""The largest error of an output and its mean square in one reading, for each timed launch has its output verified.

The operations of PyTorch that say the same go over an output a dozen times: 1.9 ms for 4096² elements on an H200, where
the float64 product they are compared with takes 2.6 ms.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harness.protocol import cuda_driver, nvrtc

_LEGACY_STREAM = 0
_THREADS = 512
_BLOCKS_PER_PROCESSOR = 4
_FIGURES = 6
_SOURCE = r"""
struct Figures {
    double error, position, got, expected, squares, lost;
};

// The larger error, and of equal ones the first: the same whatever the order that blocks end in.
__device__ __forceinline__ void keep_worse(Figures& own, const Figures& other) {
    if (other.error > own.error || (other.error == own.error && other.position < own.position)) {
        own.error = other.error, own.position = other.position, own.got = other.got, own.expected = other.expected;
    }
    own.squares += other.squares;
    own.lost += other.lost;
}

template <typename Value, typename Expected>
__device__ __forceinline__ void look(const Value* got, const Expected* expected, const double* scale,
                                     unsigned long long count, unsigned long long repeats, double unit,
                                     Figures* figures) {
    __shared__ Figures of_warps[32];
    Figures own = {-1.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        const double wide = (double)got[at], truth = (double)expected[at];
        const double most = scale[repeats == 1 ? at : at / repeats];
        // Equal where the scale is zero is no error; anything else over zero is an infinite one.
        const bool same = wide == truth || (isnan(wide) && isnan(truth));
        double error = same ? 0.0 : fabs(wide - truth) / (most * unit);
        if (isnan(error)) error = INFINITE;
        if (error > own.error) own.error = error, own.position = (double)at, own.got = wide, own.expected = truth;
        if (!isinf(error)) own.squares += error * error;
        own.lost += !isfinite(wide) && isfinite(truth);
    }
    const auto from_lane = [](const Figures& each, int lanes) {
        Figures other;
        other.error = __shfl_down_sync(0xffffffffu, each.error, lanes);
        other.position = __shfl_down_sync(0xffffffffu, each.position, lanes);
        other.got = __shfl_down_sync(0xffffffffu, each.got, lanes);
        other.expected = __shfl_down_sync(0xffffffffu, each.expected, lanes);
        other.squares = __shfl_down_sync(0xffffffffu, each.squares, lanes);
        other.lost = __shfl_down_sync(0xffffffffu, each.lost, lanes);
        return other;
    };
    for (int lanes = 16; lanes > 0; lanes /= 2) keep_worse(own, from_lane(own, lanes));
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < blockDim.x / 32; ++warp) keep_worse(own, of_warps[warp]);
        figures[blockIdx.x] = own;
    }
}

#define ENTRY(name, Value, Expected)                                                                               \
    extern "C" __global__ void name(const Value* got, const Expected* expected, const double* scale,                \
                                    unsigned long long count, unsigned long long repeats, double unit,              \
                                    Figures* figures) {                                                            \
        look(got, expected, scale, count, repeats, unit, figures);                                                 \
    }
ENTRY(errors_of_float, float, double)
ENTRY(errors_of_double, double, double)
ENTRY(errors_beside_float, float, float)
""".replace("INFINITE", "__longlong_as_double(0x7ff0000000000000ll)")
_TYPES = (*[ctypes.c_uint64] * 5, ctypes.c_double, ctypes.c_uint64)
_ENTRIES = {
    (torch.float32, torch.float64): "errors_of_float", (torch.float64, torch.float64): "errors_of_double",
    (torch.float32, torch.float32): "errors_beside_float",
}


@dataclass(frozen=True)
class Compared:
    """An output to hold against the truth: errors are |got − expected| / (unit · scale).

    `got` is float32 or float64, `expected` float64 or as `got`, `scale` float64; all are of one shape.
    """

    got: torch.Tensor
    expected: torch.Tensor
    scale: torch.Tensor
    unit: float


@dataclass(frozen=True)
class RawFigures:
    """The largest error in u (and of equal ones the first), the sum of the squares of the finite ones, the flat
    position of the largest with what was got and expected there, and how many elements are not finite where the truth
    is.
    """

    max_u: float
    square_sum: float
    position: int
    got: float
    expected: float
    not_finite: int


class ErrorKernel:
    """The loaded kernel on `device`."""

    def __init__(self, device: torch.device) -> None:
        properties = torch.cuda.get_device_properties(device)
        cubin = nvrtc.compile_cubin(_SOURCE, properties.major, properties.minor)
        self._device, self._blocks = device, _BLOCKS_PER_PROCESSOR * properties.multi_processor_count
        self._kernels = {
            dtypes: cuda_driver.Kernel(cubin, name, self._blocks, _THREADS, _TYPES) for dtypes, name in _ENTRIES.items()
        }

    def figures(self, compared: Sequence[Compared]) -> list[RawFigures | None]:
        """The figures of each, one answer waited for; None unless contiguous, where only `scale` may repeat itself."""
        scales = [_repeating(each.scale) for each in compared]
        readable = [
            number for number, (each, (rows, _)) in enumerate(zip(compared, scales))
            if each.got.is_contiguous() and each.expected.is_contiguous() and rows is not None and each.got.numel()
        ]
        figures: list[RawFigures | None] = [None] * len(compared)
        if readable:
            block_figures = torch.empty(len(readable), self._blocks, _FIGURES, dtype=torch.float64, device=self._device)
            for number, of_blocks in zip(readable, block_figures.unbind()):
                self._queue(compared[number], *scales[number], of_blocks)
            for number, of_launch in zip(readable, worst_of_blocks(block_figures.cpu())):
                figures[number] = of_launch
        return figures

    def _queue(self, each: Compared, rows: torch.Tensor, repeats: int, of_blocks: torch.Tensor) -> None:
        pointers = [tensor.data_ptr() for tensor in (each.got, each.expected, rows)]
        self._kernels[each.got.dtype, each.expected.dtype].launch(
            _LEGACY_STREAM, *pointers, each.got.numel(), repeats, each.unit, of_blocks.data_ptr()
        )


def worst_of_blocks(figures: torch.Tensor) -> list[RawFigures]:
    """What the blocks found together, for each output; `figures` is float64 (outputs, blocks, 6) on the host."""
    errors, positions = figures[..., 0], figures[..., 1]
    worst = torch.where(errors == errors.amax(dim=1, keepdim=True), positions, math.inf).argmin(dim=1)
    of_worst, sums = figures[torch.arange(len(figures)), worst, :4].tolist(), figures[..., 4:].sum(dim=1).tolist()
    return [
        RawFigures(max_u, square_sum, int(position), got, expected, int(lost))
        for (max_u, position, got, expected), (square_sum, lost) in zip(of_worst, sums)
    ]


def widened(scale: torch.Tensor) -> torch.Tensor:
    """`scale` in float64, where it repeats itself as it did."""
    if scale.dtype == torch.float64:
        return scale
    own = scale[tuple(slice(0, 1) if step == 0 and size else slice(None) for step, size in zip(scale.stride(), scale.shape))]
    return own.double().expand_as(scale)


def _repeating(scale: torch.Tensor) -> tuple[torch.Tensor | None, int]:
    """`scale` without its repetitions over the last dimensions (None: not contiguous), and how often each is there."""
    dims = scale.dim()
    while dims and scale.stride(dims - 1) == 0 and scale.size(dims - 1) > 0:
        dims -= 1
    rows = scale[(..., *[0] * (scale.dim() - dims))] if dims < scale.dim() else scale
    return (rows if rows.is_contiguous() else None), math.prod(scale.shape[dims:])


@functools.cache
def error_kernel(device: torch.device) -> ErrorKernel:
    """The one kernel of a device. Raises NvrtcError where it cannot be compiled."""
    return ErrorKernel(device)
