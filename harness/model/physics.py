"""What the hardware could do: the speed of light and the floor of a problem, and the rates a time comes to.

Pure arithmetic: peaks come from `peaks`, the copy bandwidth is measured by `device`, the useful work is the problem's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

CLASSES = ("fp32", "tf32", "bf16", "fp16")


@dataclass(frozen=True)
class Peaks:
    """Datasheet peaks of one GPU: dense rates in TFLOP/s, memory bandwidth in GB/s, None where it has none.
    `tensor16_tflops` is the 16-bit tensor rate with fp32 accumulation; `tensor16_acc16_tflops` the one with 16-bit
    accumulation where that is faster, as on GeForce cards. `source` names the document.
    """

    fp32_tflops: float
    tensor16_tflops: float | None
    tensor_tf32_tflops: float | None
    bandwidth_gbytes_s: float
    source: str
    tensor16_acc16_tflops: float | None = None


@dataclass(frozen=True)
class SpeedLimits:
    """Speed of light and floor of one problem on one device in µs; `bound_by` is "memory" or "compute"."""

    sol_us: float
    bound_by: str
    floor_us: float


def speed_limits(
    useful_flops: float | None, useful_bytes: float | None, bandwidth_gbytes_s: float | None, peaks: Peaks | None,
    precision_class: str,
) -> SpeedLimits | None:
    """Speed of light and floor, or None where something they need is not known.

    Speed of light: the larger of useful bytes over bandwidth and useful flops over the best rate that the
    precision class allows (roofline; Williams, Waterman & Patterson 2009). Floor: the same with the fastest
    rate the GPU has; nothing honest is faster. `bandwidth_gbytes_s` is the measured copy bandwidth counting
    both directions; None takes the datasheet's. Raises ValueError for negative work or an unknown class.
    """
    for work in (useful_flops, useful_bytes):
        if work is not None and not (math.isfinite(work) and work >= 0):
            raise ValueError(f"useful work cannot be {work}")
    bandwidth = bandwidth_gbytes_s or (peaks.bandwidth_gbytes_s if peaks else None)
    if (useful_flops and peaks is None) or (useful_bytes and not bandwidth):
        return None  # half a roofline would claim a limit that is none
    memory_us = useful_bytes / (bandwidth * 1e3) if useful_bytes else 0.0
    compute_us = floor_compute_us = 0.0
    if useful_flops:
        compute_us = useful_flops / (best_rate_tflops(peaks, precision_class) * 1e6)
        known = (peaks.fp32_tflops, peaks.tensor16_tflops, peaks.tensor_tf32_tflops, peaks.tensor16_acc16_tflops)
        floor_compute_us = useful_flops / (max(rate for rate in known if rate is not None) * 1e6)
    sol_us = max(memory_us, compute_us)
    if sol_us == 0:
        return None
    bound_by = "memory" if memory_us >= compute_us else "compute"
    return SpeedLimits(sol_us, bound_by, max(memory_us, floor_compute_us))


def best_rate_tflops(peaks: Peaks, precision_class: str) -> float:
    """Best rate in TFLOP/s at which a multiply-add of this accuracy can be done on this GPU. fp32: the ordinary fp32
    units, or three 16-bit tensor products per multiply-add (a two-way split without its smallest product), whichever is
    faster. Raises ValueError for an unknown class.
    """
    fp32, tensor16, tf32 = peaks.fp32_tflops, peaks.tensor16_tflops or 0.0, peaks.tensor_tf32_tflops or 0.0
    if precision_class not in CLASSES:
        raise ValueError(f"no precision class {precision_class!r}; there are {', '.join(CLASSES)}")
    return max(fp32, {"fp32": tensor16 / 3, "tf32": tf32}.get(precision_class, tensor16))


def rates(useful_flops: float | None, useful_bytes: float | None, time_us: float) -> tuple[float | None, float | None]:
    """Useful TFLOP/s and GB/s of a call that takes `time_us`, which must be positive; None for work not known."""
    _check_time(time_us)
    tflops = None if useful_flops is None else useful_flops / (time_us * 1e6)
    gbytes_s = None if useful_bytes is None else useful_bytes / (time_us * 1e3)
    return tflops, gbytes_s


def percent_of_sol(limit: SpeedLimits | None, time_us: float) -> float | None:
    """100·sol/time, or None without a limit. Raises ValueError for a time that is not positive."""
    _check_time(time_us)
    return None if limit is None else 100 * limit.sol_us / time_us


def _check_time(time_us: float) -> None:
    if not (math.isfinite(time_us) and time_us > 0):
        raise ValueError(f"a call cannot take {time_us} µs")
