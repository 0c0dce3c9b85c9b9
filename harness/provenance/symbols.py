"""Names of the kernels that a build produced: from the device code of its extensions and from its Triton cache.

Device symbols are read with cuobjdump where the toolkit has it. Without it, the names that an extension registers
with the runtime are taken from its read-only strings, which is weaker: a string proves less than a symbol.
"""

from __future__ import annotations

import ctypes
import functools
import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

_DEVICE_SYMBOL = re.compile(r"STT_FUNC\s+STB_GLOBAL\s+STO_ENTRY\s+(\S+)")
_STRING = re.compile(rb"[A-Za-z_][A-Za-z0-9_$.]{2,2000}(?=\x00)")


def kernel_names(extensions: Iterable[Path], triton_cache: Path | None) -> set[str]:
    """Demangled names, and bare names for `extern "C"` and Triton kernels."""
    names: set[str] = set()
    for path in extensions:
        for symbol in _device_symbols(path):
            names.add(demangled(symbol))
    if triton_cache is not None and triton_cache.is_dir():
        for path in triton_cache.glob("*/*.json"):
            try:
                described = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if isinstance(described, dict) and isinstance(described.get("name"), str):
                names.add(described["name"])
    return names


def demangled(symbol: str) -> str:
    """The C++ name of a mangled symbol, or the symbol itself."""
    if not symbol.startswith("_Z"):
        return symbol
    demangle, free = _demangler()
    if demangle is None:
        return symbol
    status = ctypes.c_int()
    pointer = demangle(symbol.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not pointer:
        return symbol
    try:
        return ctypes.string_at(pointer).decode(errors="replace")
    finally:
        free(pointer)


def _device_symbols(path: Path) -> set[str]:
    tool = shutil.which("cuobjdump") or shutil.which("cuobjdump", path="/usr/local/cuda/bin")
    if tool is not None:
        try:
            listed = subprocess.run(
                [tool, "--dump-elf-symbols", str(path)], capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            listed = None
        if listed is not None and listed.returncode == 0:
            return set(_DEVICE_SYMBOL.findall(listed.stdout))
    try:
        return {match.decode() for match in _STRING.findall(path.read_bytes())}
    except OSError:
        return set()


@functools.lru_cache(maxsize=1)
def _demangler():
    for name in ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib"):
        try:
            library = ctypes.CDLL(name)
            demangle, free = library.__cxa_demangle, ctypes.CDLL(None).free
        except (OSError, AttributeError):
            continue
        demangle.restype = ctypes.c_void_p
        free.argtypes = [ctypes.c_void_p]
        return demangle, free
    return None, None
