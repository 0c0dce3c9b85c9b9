"""What may be called the candidate's own, gathered from what its build and its Triton cache left and from its source.

How far each goes:

- Device symbols of its extensions are read with cuobjdump from files whose hash the judge has checked: the build
  made device code of that very name. Without cuobjdump, the names are taken from the file's strings, and a string
  anybody can write.
- The Triton cache is a folder that the candidate's process writes to. A description there is believed only beside a
  cubin with that entry symbol, compiled from a file that is no package's, and all of it can be forged, times of
  modification too; so that a name counts, the source must define a function of it as well, and that the judge reads
  itself, and no installed package may have a kernel of it, which the judge looks up.
- For what was compiled at run time by other means there is the source alone.

None of these proves that the kernel of that name is the one that ran: `kernel_ownership` decides with the names of libraries in
mind, and the time of the traced launch is held against the timed ones by the judge.
"""

from __future__ import annotations

import json
import os
import re
import struct
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from harness.attribution.demangling import demangled_names
from harness.attribution.device_code import device_symbols, strings_of
from harness.attribution.installed_kernels import installed_folders
from harness.attribution.kernel_names import bare_name
from harness.attribution.source_names import SourceNames, source_names
from harness.sandbox.leftovers import content_of

_SYMBOL_TABLE, _FUNCTION, _CUDA_ENTRY, _SYMBOL_BYTES = 2, 2, 0x10, 24
_NO_ELF = (struct.error, IndexError, ValueError, OverflowError)
# The candidate writes them: one kernel for all values of its arguments that were compiled.
_LARGEST_CUBIN_BYTES, _LARGEST_DESCRIPTION_BYTES = 16 << 20, 1 << 20
_MOST_DESCRIPTIONS, _MOST_FOLDERS, _MOST_CACHE_S = 256, 20_000, 20.0
# What is beyond names nothing; an extension with a thousand instantiations of CUTLASS's has a thousand.
_MOST_SYMBOLS, _MOST_S = 50_000, 120.0
_MOST_LOOKED_FOR = 16
_SPELT_OUT = re.compile(r"(?!operator|basic_|string|allocator)[A-Za-z_]\w*", re.ASCII)
# The files that Triton's first form of a kernel says its parts come from.
_PLACES = re.compile(rb'\bloc\("([^"\n]{1,4096})":\d+:\d+\)')
_LONGEST_SYMBOL, _MOST_OF_NAMES = 64 << 10, 64 << 20


@dataclass(frozen=True)
class OwnNames:
    """Names that may be the candidate's. `extension` has the demangled name of each device symbol;
    `strings` are names found without cuobjdump; `triton` have a cubin in the candidate's cache and a function in its
    source; `source` is what its text defines.
    """

    extension: frozenset[str] = frozenset()
    strings: frozenset[str] = frozenset()
    triton: frozenset[str] = frozenset()
    source: SourceNames = SourceNames()


def gather(
    extensions: Iterable[Path], triton_cache: Path | None, source: Path | None, traced: Iterable[str]
) -> OwnNames:
    """What may be the candidate's of the kernels that were recorded as `traced`, and no others. Raises nothing."""
    symbols: set[str] = set()
    strings: set[str] = set()
    bare = {bare_name(name) for name in traced}
    deadline = time.monotonic() + _MOST_S
    for path in extensions:
        extension_symbols = device_symbols(path, deadline - time.monotonic(), _MOST_SYMBOLS - len(symbols))
        if extension_symbols is None:
            strings.update(islice(strings_of(path, bare), _MOST_SYMBOLS - len(strings)))
        else:
            symbols |= extension_symbols
    symbols, strings = with_a_name_of(bare, symbols), with_a_name_of(bare, strings)
    # At once, since its limits are those of one call, and first what can be a name that was traced.
    names = demangled_names(sorted(symbols | strings, key=lambda each: (not any(map(each.__contains__, bare)), each)))
    written = SourceNames() if source is None else source_names(source)
    cached: set[str] = set()
    if triton_cache is not None and source is not None:
        cached = triton_kernels(triton_cache, bare & written.functions, source.parent)
    return OwnNames(
        frozenset(names[symbol] for symbol in symbols), frozenset(names[string] for string in strings),
        frozenset(cached), written,
    )


def with_a_name_of(bare: Collection[str], symbols: Collection[str]) -> set[str]:
    """Those of the mangled `symbols` that may stand for a function of a `bare` name, which is spelt out in each.

    All of them where one of the names is no plain identifier, or an operator's or a standard class's, which are not,
    and where there are so many names that looking for each takes longer than it saves.
    """
    if len(bare) > _MOST_LOOKED_FOR or not all(_SPELT_OUT.fullmatch(name) for name in bare):
        return set(symbols)
    return {symbol for symbol in symbols if any(name in symbol for name in bare)}


def triton_kernels(cache: Path, wanted: Iterable[str], folder: Path) -> set[str]:
    """Those of the names `wanted` that `cache` describes beside a cubin which has that entry symbol, compiled from a file
    that is no package's, as far as they are found in 20 s; the candidate lies in `folder`.
    """
    deadline = time.monotonic() + _MOST_CACHE_S
    try:
        folders = list(islice(cache.iterdir(), _MOST_FOLDERS))
    except OSError:
        return set()
    kernels = set()
    for name in wanted:
        paths = (each / f"{name}.json" for each in folders)
        described = (path for path in paths if time.monotonic() < deadline and os.path.isfile(path))
        if any(_is_kernel(path, name, folder) for path in islice(described, _MOST_DESCRIPTIONS)):
            kernels.add(name)
    return kernels


def entry_symbols(cubin: bytes) -> set[str]:
    """The entry functions of device code in ELF; none when it cannot be read as such."""
    try:
        return set(_entries(cubin))
    except _NO_ELF:
        return set()


def _is_kernel(description: Path, name: str, folder: Path) -> bool:
    """Whether a description in Triton's cache is of `name`, and the cubin beside it has it as an entry and was compiled
    from a file that is no package's. (Nor need it be the candidate's where it lies now: a cache outlives its moves.)
    """
    try:
        body = json.loads(content_of(description, _LARGEST_DESCRIPTION_BYTES))
    except (ValueError, RecursionError):
        return False
    if not isinstance(body, dict) or body.get("name") != name:
        return False
    if name not in entry_symbols(content_of(description.with_suffix(".cubin"), _LARGEST_CUBIN_BYTES)):
        return False
    # Of a package's kernel all of it comes from packages; a candidate's may call what Triton itself brings.
    files = set(_PLACES.findall(content_of(description.with_suffix(".ttir"), _LARGEST_CUBIN_BYTES)))
    packages = (f"{each}{os.sep}" for each in installed_folders())
    # But for a place that the candidate's folder itself lies in.
    packages = tuple(each for each in packages if not os.path.realpath(folder).startswith(each))
    return any(not os.path.realpath(each.decode(errors="replace")).startswith(packages) for each in files)


def _entries(elf: bytes) -> Iterator[str]:
    """The entry functions in the symbol table (ELF64, little-endian). Raises struct.error, ValueError and their like."""
    if elf[:6] != b"\x7fELF\x02\x01":
        return
    (sections_at,) = struct.unpack_from("<Q", elf, 40)
    size, count = struct.unpack_from("<HH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, sections_at + index * size) for index in range(count)]
    for _, kind, _, _, offset, length, link, _, _, _ in headers:
        if kind != _SYMBOL_TABLE:
            continue
        names_at, names_length = headers[link][4:6]
        names = elf[names_at : names_at + names_length]
        left = _MOST_OF_NAMES  # a forged table may say that a thousand names begin in one text of many megabytes
        for at in range(offset, offset + length, _SYMBOL_BYTES):
            name_at, info, other, section = struct.unpack_from("<IBBH", elf, at)
            end = names.index(b"\0", name_at, name_at + _LONGEST_SYMBOL)
            left -= end - name_at + _SYMBOL_BYTES
            if left < 0:
                raise ValueError("more names than are looked at")
            name = names[name_at:end].decode(errors="replace")
            if info & 0xF == _FUNCTION and other & _CUDA_ENTRY and section:  # 0: it is defined elsewhere
                yield name
        return  # there is one of a kind; a forged file may have thousands that are all of it
