"""Relocatable device code (`-rdc=true`, `-dc`): what `load` and `load_inline` leave out, its link on the device's side.

Kernels that launch kernels, and functions of one source that another calls, need it. PyTorch has that step for extensions
that are installed, and not for those that are built as they are called for: they then fail to load for want of a symbol.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

_RELOCATABLE = re.compile(r"--?(?:dc|device-c|(?:rdc|relocatable-device-code)(?:=true)?)")
_NOT_RELOCATABLE = re.compile(r"--?(?:rdc|relocatable-device-code)=false")
_ARCHITECTURES = ("-gencode", "--generate-code", "-arch", "--gpu-architecture")
_OF_BOTH_STEPS = ("-dlto", "--dlink-time-opt")
# What a kernel calls to launch another.
_DEVICE_RUNTIME = "-lcudadevrt"


def is_relocatable(flags: Sequence[str]) -> bool:
    """Whether nvcc makes relocatable code with these; the last that says so counts, "-rdc" may have its word after it."""
    is_enabled, words = False, [str(flag).strip() for flag in flags]
    for word, after in zip(words, [*words[1:], ""]):
        if _RELOCATABLE.fullmatch(word):
            is_enabled = after != "false"
        elif _NOT_RELOCATABLE.fullmatch(word):
            is_enabled = False
    return is_enabled


def linking_flags(flags: Sequence[str]) -> list[str]:
    """Flags with which nvcc links what it compiled with `flags`, for the same architectures."""
    kept, takes_next = [], False
    for flag in map(str, flags):
        if takes_next or flag.startswith(_ARCHITECTURES) or flag in _OF_BOTH_STEPS:
            kept.append(flag)
        takes_next = flag in _ARCHITECTURES
    return ["-dlink", "--compiler-options", "'-fPIC'", *kept, _DEVICE_RUNTIME]


def with_device_linking(write_ninja_file: Callable[..., None]) -> Callable[..., None]:
    """PyTorch's `_write_ninja_file`, which then has that step wherever code is relocatable."""
    signature = inspect.signature(write_ninja_file)
    known = {"cuda_cflags", "cuda_dlink_post_cflags", "ldflags"} <= signature.parameters.keys()

    @functools.wraps(write_ninja_file)
    def write(*positional: Any, **named: Any) -> None:
        bound = signature.bind(*positional, **named)
        given = bound.arguments
        flags = given.get("cuda_cflags") or []
        if known and is_relocatable(flags) and not given.get("cuda_dlink_post_cflags"):
            given["cuda_dlink_post_cflags"] = linking_flags(flags)
            given["ldflags"] = [*(given.get("ldflags") or []), _DEVICE_RUNTIME]
        write_ninja_file(*bound.args, **bound.kwargs)

    return write
