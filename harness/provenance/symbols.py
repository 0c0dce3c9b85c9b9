"""What may be called the candidate's own, gathered from what its build and its Triton cache left and from its source.

How far each goes:

- Device symbols of its extensions are read with cuobjdump from files whose hash the referee has checked: the build
  made device code of that very name. Without cuobjdump, the names are taken from the file's strings, and a string
  anybody can write.
- The Triton cache is a folder that the candidate's process writes to. A description there is believed only beside a
  cubin with that entry symbol, and both can be forged, times of modification too; so that a name counts, the source
  must define a function of it as well, and that the referee reads itself.
- For what was compiled at run time by other means there is the source alone.

None of these proves that the kernel of that name is the one that ran: `kinds` decides with the names of libraries in
mind, and the time of the traced launch is held against the timed ones by the judge.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import struct
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from harness.provenance.demangling import demangled_names
from harness.provenance.names import bare_name
from harness.provenance.source_names import SourceNames, source_names
from harness.sandbox.left_behind import content_of

# `STT_FUNC STB_GLOBAL STO_ENTRY name` up to CUDA 13.1, `FUNC GLOBAL DEFAULT ENTRY name` since.
_ENTRY_LINE = re.compile(r"^(?:STT_)?FUNC\s.*\s(?:STO_)?ENTRY\s.*?(\S+)$", re.MULTILINE)
_STRING = re.compile(rb"[A-Za-z_][A-Za-z0-9_$.]{2,2000}(?=\x00)")
_ANONYMOUS_PART = re.compile(r"(\d+)(_GLOBAL__N_)")
_SYMBOL_TABLE, _FUNCTION, _CUDA_ENTRY, _SYMBOL_BYTES = 2, 2, 0x10, 24
_NO_ELF = (struct.error, IndexError, ValueError, OverflowError)
# The candidate writes them: one kernel for all values of its arguments that were compiled.
_LARGEST_CUBIN_BYTES, _MOST_DESCRIPTIONS = 64 << 20, 256
_CHUNK_BYTES, _LONGEST_SYMBOL, _MOST_OF_NAMES = 64 << 20, 64 << 10, 64 << 20
_TOOL_TIMEOUT_S = 60


class _Symbol(NamedTuple):
    """An entry of an ELF symbol table; `section` 0 means that the symbol is defined elsewhere."""

    name: str
    kind: int
    other: int
    section: int


@dataclass(frozen=True)
class Evidence:
    """Names that may be the candidate's. `extension` maps the demangled name of each device symbol to the symbol;
    `strings` are names found without cuobjdump; `triton` have a cubin in the candidate's cache and a function in its
    source; `source` is what its text defines.
    """

    extension: Mapping[str, str] = field(default_factory=dict)
    strings: frozenset[str] = frozenset()
    triton: frozenset[str] = frozenset()
    source: SourceNames = SourceNames()


def gather(
    extensions: Iterable[Path], triton_cache: Path | None, source: Path | None, traced: Iterable[str]
) -> Evidence:
    """The evidence for kernels of the names `traced` (as the profiler gives them). Raises nothing."""
    symbols: set[str] = set()
    strings: set[str] = set()
    for path in extensions:
        found = device_symbols(path)
        if found is None:
            strings |= _strings_of(path)
        else:
            symbols |= found
    names = demangled_names(symbols | strings)  # at once, since its limits are those of one call
    written = SourceNames() if source is None else source_names(source)
    bare = {bare_name(name) for name in traced}
    cached = triton_kernels(triton_cache, bare & written.functions) if triton_cache is not None else set()
    return Evidence(
        {names[symbol]: symbol for symbol in symbols}, frozenset(names[string] for string in strings),
        frozenset(cached), written,
    )


def device_symbols(path: Path) -> set[str] | None:
    """The kernels in the device code of a shared object, mangled; None where there is no cuobjdump to read them."""
    tool = find_cuobjdump()
    if tool is None:
        return None
    command = [tool, "--dump-elf-symbols", str(path)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return None
    with process:
        alarm = threading.Timer(_TOOL_TIMEOUT_S, process.kill)
        alarm.start()
        listed = process.stdout.read(_MOST_OF_NAMES + 1)
        if len(listed) > _MOST_OF_NAMES:  # 300 KB of a forged table are 600 MB of names
            process.kill()
        code = process.wait()
        alarm.cancel()
    if len(listed) > _MOST_OF_NAMES:
        return set()
    return set(_ENTRY_LINE.findall(listed.decode(errors="replace"))) if code == 0 else None


def find_cuobjdump() -> str | None:
    """The tool on the PATH, of the toolkit, or of Triton's package, which carries one."""
    places = [os.environ.get("PATH", os.defpath), "/usr/local/cuda/bin"]
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            places.insert(1, str(Path(os.environ[name], "bin")))
    spec = importlib.util.find_spec("triton")
    if spec is not None and spec.origin is not None:
        places.append(str(Path(spec.origin).parent / "backends" / "nvidia" / "bin"))
    return shutil.which("cuobjdump", path=os.pathsep.join(places))


def triton_kernels(cache: Path, wanted: Iterable[str]) -> set[str]:
    """Those of the names `wanted` that `cache` describes beside a cubin which has that entry symbol."""
    return {
        name for name in wanted
        if any(_is_kernel(path, name) for path in islice(cache.glob(f"*/{name}.json"), _MOST_DESCRIPTIONS))
    }


def entry_symbols(cubin: bytes) -> set[str]:
    """The entry functions of device code in ELF; none when it cannot be read as such."""
    try:
        found = list(_symbols(cubin, _SYMBOL_TABLE))
    except _NO_ELF:
        return set()
    return {each.name for each in found if each.kind == _FUNCTION and each.other & _CUDA_ENTRY}


def shipped_by_pytorch(symbols: Iterable[str], folder: Path | None = None) -> set[str]:
    """Those of the mangled `symbols` that PyTorch's CUDA libraries carry as well.

    Kernels are registered with the runtime by name, so that the names stand in the libraries as plain strings. The
    name of an anonymous namespace differs from file to file, where the demangled name does not: any will do.
    """
    patterns = {symbol: _in_any_file(symbol) for symbol in symbols}
    found: set[str] = set()
    for library in sorted((folder or _pytorch_libraries()).glob("libtorch_cuda*")):
        for chunk in _chunks(library):
            for symbol, (ending, pattern) in patterns.items():
                if symbol not in found and ending in chunk and pattern.search(chunk):
                    found.add(symbol)
    return found


def _is_kernel(description: Path, name: str) -> bool:
    """Whether a description in Triton's cache is of `name`, and the cubin beside it has it as an entry."""
    try:
        body = json.loads(content_of(description, _LARGEST_CUBIN_BYTES))
    except (ValueError, RecursionError):
        return False
    if not isinstance(body, dict) or body.get("name") != name:
        return False
    return name in entry_symbols(content_of(description.with_suffix(".cubin"), _LARGEST_CUBIN_BYTES))


def _symbols(elf: bytes, table: int) -> Iterator[_Symbol]:
    """The symbols of the tables of one kind (ELF64, little-endian). Raises struct.error, ValueError and their like."""
    if elf[:6] != b"\x7fELF\x02\x01":
        return
    (sections_at,) = struct.unpack_from("<Q", elf, 40)
    size, count = struct.unpack_from("<HH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, sections_at + index * size) for index in range(count)]
    for _, kind, _, _, offset, length, link, _, _, _ in headers:
        if kind != table:
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
            yield _Symbol(names[name_at:end].decode(errors="replace"), info & 0xF, other, section)
        return  # there is one of a kind; a forged file may have thousands that are all of it


def _in_any_file(symbol: str) -> tuple[bytes, re.Pattern[bytes]]:
    """How `symbol` ends, and a pattern for it with every anonymous namespace of whatever name."""
    pattern, done = "", 0
    for match in _ANONYMOUS_PART.finditer(symbol):
        begin, written = match.start(2), match[1]
        # The name before may end in digits; those that count the letters of this part come last.
        digits = next((written[at:] for at in range(len(written)) if begin + int(written[at:]) < len(symbol)), None)
        if digits is not None:
            pattern += re.escape(symbol[done : begin - len(digits)]) + r"\d+_GLOBAL__N_\w{1,200}?"
            done = begin + int(digits)
    ending = symbol[done:]
    return ending.encode(), re.compile((pattern + re.escape(ending)).encode() + rb"(?!\w)")


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


def _strings_of(path: Path) -> set[str]:
    return {match.decode() for match in _STRING.findall(content_of(path))}
