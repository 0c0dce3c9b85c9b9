"""What a cubin says of the constant memory of its kernels, which ptxas leaves out for sm_90 and later.

A cubin is an ELF file of 64 bits. Each kernel has its arguments in a section `.nv.constant0.KERNEL` (behind what the
driver keeps there, as in ptxas's own figure), the compiler's constants may be in further banks, and the `__constant__`
variables of the whole source are in `.nv.constant3`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

from harness.model.files.elf import sections

_OF_KERNEL = re.compile(r"\.nv\.constant\d+\.(.+)")
_VARIABLES = ".nv.constant3"
_SAID = re.compile(r"cubin info: '([^']+)' for '(sm_\w+)' has (\d+) bytes of constant memory")


def constant_bytes(cubin: bytes) -> dict[str, int]:
    """Bytes of constant memory by each kernel's symbol, the source's variables included; empty for what is no cubin."""
    try:
        found = sections(cubin)
    except (struct.error, ValueError):
        return {}
    variables, size_by_kernel = 0, {}
    for name, _, size in found:
        if name == _VARIABLES:
            variables = size
        elif of := _OF_KERNEL.fullmatch(name):
            size_by_kernel[of[1]] = size_by_kernel.get(of[1], 0) + size
    return {symbol: size + variables for symbol, size in size_by_kernel.items()}


def told(size_by_kernel: Mapping[str, int], sm: str) -> str:
    """Lines for a build's log of what `constant_bytes` found for one architecture."""
    line = "cubin info: '{}' for '{}' has {} bytes of constant memory\n".format
    return "".join(line(symbol, sm, size) for symbol, size in size_by_kernel.items())


def read_told(log: str) -> dict[tuple[str, str], int]:
    """Of a log the bytes by symbol and architecture."""
    return {(symbol, sm): int(size) for symbol, sm, size in _SAID.findall(log)}
