"""C++ names from the symbols of a candidate's device code, in bounded time and memory.

A symbol of two hundred letters can stand for a name of gigabytes: a template of which each argument is a pair of the
one before doubles it with each level. So symbols are demangled by another process, with limits of its own, but for a
few that are too short for that.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
from collections.abc import Collection
from itertools import accumulate

LONGEST_NAME = 8000  # CUTLASS's run to thousands of characters
_LONGEST_SYMBOL = 16_000
# What refers back to a part of the symbol can at most double what stands before it; its number ends in such a line.
_MOST_LINES = 8
_MEMORY_BYTES, _SECONDS = 1 << 30, 5
# So few and so short ones, whose names are 64 KiB at most, are not worth the 30 ms of a process.
_SHORT, _FEW = 256, 64
# A candidate has as many as it likes. An extension of a thousand of CUTLASS's kernels has 2 MiB of them.
_MOST_SYMBOLS, _MOST_BYTES = 50_000, 32 << 20


def demangled_names(symbols: Collection[str]) -> dict[str, str]:
    """The C++ names of mangled symbols by symbol, each cut off at `LONGEST_NAME`.

    Itself for what is no mangled symbol, and for what lies beyond the limits: of how many there are and how long they
    are together, in their order, and of how long it takes, in which those that cannot be endless come first. A symbol
    that is left as it is may name a traced kernel that was left so, too.
    """
    name_by_symbol = {symbol: symbol for symbol in symbols}
    mangled = [each for each in name_by_symbol if each.startswith("_Z") and len(each) <= _LONGEST_SYMBOL]
    mangled = [each for each in mangled if len(each.split()) == 1]  # a line break would push others to its name
    lengths = accumulate(map(len, mangled))
    mangled = [symbol for symbol, bytes_so_far in zip(mangled[:_MOST_SYMBOLS], lengths) if bytes_so_far <= _MOST_BYTES]
    mangled.sort(key=lambda symbol: symbol.count("_") > _MOST_LINES)
    if len(mangled) <= _FEW and all(len(each) <= _SHORT and each.count("_") <= _MOST_LINES for each in mangled):
        name_by_symbol |= {each: _demangled(each) for each in mangled}
    else:
        name_by_symbol |= zip(mangled, _by_another_process(mangled))
    return name_by_symbol


def _by_another_process(symbols: Collection[str]) -> list[str]:
    """The names of as many of `symbols` as were done within the limits, in their order."""
    command = [sys.executable, "-I", "-S", __file__]
    given = "".join(f"{symbol}\n" for symbol in symbols).encode("ascii", "replace")
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return []
    with process:
        try:
            written, _ = process.communicate(given, timeout=2 * _SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            written, _ = process.communicate()
    *whole, _ = written.decode(errors="replace").split("\n")
    return whole


def _demangled(symbol: str) -> str:
    demangle, free = _demangler()
    if demangle is None:
        return symbol
    status = ctypes.c_int()
    pointer = demangle(symbol.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not pointer:
        return symbol
    try:
        return ctypes.string_at(pointer)[:LONGEST_NAME].decode(errors="replace")
    finally:
        free(pointer)


@functools.lru_cache(maxsize=1)
def _demangler():
    beside = os.path.join(sys.prefix, "lib", "libstdc++.so.6")  # an environment may bring the only one
    for name in ("libstdc++.so.6", beside, "libc++abi.so.1", "libc++abi.dylib"):
        try:
            library = ctypes.CDLL(name)
            demangle, free = library.__cxa_demangle, ctypes.CDLL(None).free
        except (OSError, AttributeError):
            continue
        demangle.restype = ctypes.c_void_p
        free.argtypes = [ctypes.c_void_p]
        return demangle, free
    return None, None


def main() -> None:
    """Demangle the lines of stdin, within the limits."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(_demangled(line.decode("ascii", "replace").rstrip("\n")).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
