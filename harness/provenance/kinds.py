"""From a profiled launch to a kind: custom, library, mixed or unknown.

A kernel is the candidate's own when its symbol is in an extension that its build produced or in its Triton cache, a
library's when its name is one that PyTorch's libraries give, and otherwise unknown (compiled at run time, say). On a CPU there are no kernels to trace: there the share of PyTorch's own operators in the call decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

OWN_SHARE, LIBRARY_SHARE = 0.95, 0.05
# Copies and fills by the driver are nobody's kernel, and reserving memory is no arithmetic.
_NEUTRAL_KERNELS = ("Memset", "Memcpy")
_LIBRARY_NAME = re.compile(
    r"^(void )?((at|at_cuda_detail|cub|thrust|cutlass|cudnn|cask\w*|flash|pytorch_flash)::|cublas|cutlass|gemv2|gemvNSP|gemmSN|"
    r"gemmk1|dot_kernel|splitKreduce|cudnn|implicit_convolve|(vector|regular)_fft)|"
    r"^(sm\d+|ampere|volta|turing|maxwell|hopper|blackwell)_|^nvjet_|^nccl"
)
_NEUTRAL_OPERATORS = (
    "aten::empty", "aten::as_strided", "aten::view", "aten::t", "aten::transpose", "aten::detach", "aten::slice",
    "aten::select", "aten::expand", "aten::reshape", "aten::unsqueeze", "aten::resize_", "aten::to",
    "aten::lift_fresh", "aten::numpy_T", "aten::permute", "aten::squeeze", "aten::alias",
)


@dataclass(frozen=True)
class Provenance:
    """`kind`, the share of the time in own kernels (None when unknown), and the kernels with their owner."""

    kind: str
    own_share: float | None
    kernels: tuple[tuple[str, float, str], ...] = ()


def kind_on_gpu(kernels: Collection[dict[str, Any]], own_names: Collection[str]) -> Provenance:
    """Judge by kernel names and times in µs; `own_names` are those found in what the candidate's build made."""
    traced, own_us, unknown_us, total_us = [], 0.0, 0.0, 0.0
    for kernel in kernels:
        name, time_us = str(kernel.get("name")), float(kernel.get("us") or 0.0)
        if name.startswith(_NEUTRAL_KERNELS):
            traced.append((name, time_us, "driver"))
            continue
        owner = _owner(name, own_names)
        traced.append((name, time_us, owner))
        total_us += time_us
        own_us += time_us if owner == "own" else 0.0
        unknown_us += time_us if owner == "unknown" else 0.0
    if total_us <= 0 or unknown_us / total_us >= 1 - OWN_SHARE:
        return Provenance("unknown", None, tuple(traced))
    share = own_us / total_us
    return Provenance(_kind(share), share, tuple(traced))


def kind_on_cpu(operators: Collection[dict[str, Any]], total_us: float, *, has_extension: bool) -> Provenance:
    """Judge by the time in PyTorch's operators out of the whole call, both in µs."""
    library_us = sum(
        float(operator.get("us") or 0.0)
        for operator in operators
        if not str(operator.get("name")).startswith(_NEUTRAL_OPERATORS)
    )
    if total_us <= 0:
        return Provenance("unknown", None)
    share = max(0.0, 1.0 - library_us / total_us)
    if not has_extension:
        # Nothing of its own was built: what is not an operator is Python's overhead, or untraceable.
        return Provenance("library" if share < 0.5 else "unknown", None)
    return Provenance(_kind(share), share)


def _owner(name: str, own_names: Collection[str]) -> str:
    if name in own_names or name.split("(")[0].split("<")[0].removeprefix("void ") in own_names:
        return "own"
    return "library" if _LIBRARY_NAME.search(name) else "unknown"


def _kind(own_share: float) -> str:
    if own_share >= OWN_SHARE:
        return "custom"
    return "library" if own_share <= LIBRARY_SHARE else "mixed"
