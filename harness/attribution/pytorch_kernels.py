"""Which kernels PyTorch's CUDA libraries carry, read from the libraries' own text.

Kernels are registered with the runtime by name, so that the names stand in the libraries as plain strings. They are
compared as C++ names: one name can be mangled in more than one way, and that of an anonymous namespace differs from
file to file.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from harness.attribution.demangling import demangled_names
from harness.attribution.kernel_names import bare_name, is_mangled

_CHUNK_BYTES, _LONGEST_SYMBOL, _MOST_ALIKE = 64 << 20, 64 << 10, 40_000
_SYMBOL = re.compile(rb"_Z[\w.$]+")


def shipped_by_pytorch(names: Collection[str], folder: Path | None = None) -> set[str]:
    """Those of `names` (as they were recorded; in a namespace, or mangled still) that PyTorch carries a kernel of.

    A name that so much of PyTorch is called alike that not all of it is looked at counts as carried.
    """
    written = {name: _as_written(name) for name in names}
    alike: dict[str, set[str]] = {name: set() for name in names}
    for library in sorted((folder or _pytorch_libraries()).glob("libtorch_cuda*")):
        for chunk in _chunks(library):
            for name, part in written.items():
                if len(alike[name]) <= _MOST_ALIKE:
                    alike[name].update(_symbols_with(part, chunk))
    carried_names = {name for name, symbols in alike.items() if name in symbols or len(symbols) > _MOST_ALIKE}
    for name in alike.keys() - carried_names:
        if name in demangled_names(sorted(alike[name], key=len)).values():
            carried_names.add(name)
    return carried_names


def _as_written(name: str) -> bytes:
    """How the function's own name stands in its symbol, whatever stands around it."""
    bare = bare_name(name)
    return name.encode() if is_mangled(name) else f"{len(bare)}{bare}".encode()


def _symbols_with(part: bytes, chunk: bytes) -> Iterator[str]:
    """The symbols in `chunk` of functions in a namespace whose own name is `part`: I, E or nothing comes after."""
    at = chunk.find(part)
    while at >= 0:
        after = at + len(part)
        if chunk[after : after + 1] in (b"I", b"E", b"\0"):
            begin = chunk.rfind(b"\0", max(0, at - _LONGEST_SYMBOL), at) + 1
            end = chunk.find(b"\0", after, after + _LONGEST_SYMBOL)
            if end >= 0 and _SYMBOL.fullmatch(chunk, begin, end):
                yield chunk[begin:end].decode()
        at = chunk.find(part, after)


def _pytorch_libraries() -> Path:
    spec = importlib.util.find_spec("torch")
    return Path(spec.origin).parent / "lib" if spec is not None and spec.origin is not None else Path(os.devnull)


def _chunks(path: Path) -> Iterator[bytes]:
    """The file in pieces, each beginning with the end of the one before, so that no name is cut in two."""
    try:
        with path.open("rb") as file:
            last = b""
            while piece := file.read(_CHUNK_BYTES):
                yield last + piece
                last = piece[-_LONGEST_SYMBOL:]
    except OSError:
        return
