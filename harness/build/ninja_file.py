"""What PyTorch leaves out of the file by which ninja builds an extension: the link on the device's side, and quotes.

Relocatable device code (`-rdc=true`, `-dc`) needs that link: kernels that launch kernels have it, and functions of one source
that another calls. PyTorch has the step for extensions that are installed, and not for those that `load` and `load_inline`
build as they are called for: they then fail to load for want of a symbol.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import shlex
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


def with_quoted_folders(write_ninja_file: Callable[..., None]) -> Callable[..., None]:
    """PyTorch's `_write_ninja_file` with each library, and each folder of libraries, quoted for the shell.

    PyTorch quotes the folders of headers alone. A flag that is anything else than one file or folder that there is stays
    as it was given.
    """
    signature = inspect.signature(write_ninja_file)

    def quoted(flag: str) -> str:
        is_one = os.path.isfile(flag) or (flag.startswith("-L") and os.path.isdir(flag[2:]))
        return shlex.quote(flag) if is_one else flag

    @functools.wraps(write_ninja_file)  # it is bound by its arguments' names again
    def write(*positional: Any, **named: Any) -> None:
        bound = signature.bind(*positional, **named)
        if bound.arguments.get("ldflags"):
            bound.arguments["ldflags"] = [quoted(str(flag)) for flag in bound.arguments["ldflags"]]
        write_ninja_file(*bound.args, **bound.kwargs)

    return write
