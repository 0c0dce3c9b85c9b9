"""The machine code that a worker loaded into the GPU, and whether a kernel of the build's name is the build's.

A kernel is told by its name, and two modules may have one of the same. So each module that was loaded is kept as the driver
was given it, and of a name that counts as the build's all code that was loaded under it must be code that the build made.
"""

from __future__ import annotations

import hashlib
import struct
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.attribution.demangling import demangled_names
from harness.attribution.device_code import device_symbols, find_cuobjdump
from harness.attribution.kernel_names import bare_name
from harness.attribution.symbols import with_a_name_of
from harness.model.files.elf import sections
from harness.sandbox.leftovers import content_of

_WORD_BYTES = 8
_TEXT = ".text."
_MOST_MODULES = 10_000
# An extension is the candidate's, and packed: a little of it may be gigabytes.
_EXTRACT_S, _EXTRACTED_BYTES, _POLL_S = 60.0, 1 << 30, 0.005


@dataclass(frozen=True)
class LoadedCode:
    """Modules as they were loaded; it `is_whole` where none is missing."""

    modules: Sequence[bytes]
    is_whole: bool


def read_modules(content: bytes, count: int, *, is_whole: bool) -> LoadedCode:
    """The modules that a recorder left, each behind its length and filled up to whole words."""
    modules, at, is_whole = [], 0, is_whole and count <= _MOST_MODULES
    for _ in range(min(count, _MOST_MODULES)):
        if at + _WORD_BYTES > len(content):
            return LoadedCode(modules, is_whole=False)
        (length,) = struct.unpack_from("<Q", content, at)
        at += _WORD_BYTES
        if length > len(content) - at:
            return LoadedCode(modules, is_whole=False)
        modules.append(content[at : at + length])
        at += -(-length // _WORD_BYTES) * _WORD_BYTES
    return LoadedCode(modules, is_whole)


def code_by_symbol(cubin: bytes) -> dict[str, memoryview] | None:
    """The machine code of each function in device code in ELF, by its symbol; None where it cannot be read as such."""
    try:
        functions = [each for each in sections(cubin) if each[0].startswith(_TEXT)]
    except (struct.error, ValueError, OverflowError):
        return None
    code = {name[len(_TEXT):]: memoryview(cubin)[place : place + size] for name, place, size in functions}
    # No compiler has two of one name, or such as overlap or end beyond the file.
    is_forged = len(code) < len(functions) or sum(size for _, _, size in functions) > len(cubin)
    return None if is_forged else code


def built_code(extensions: Iterable[Path], sm: str) -> dict[str, set[str]] | None:
    """Digests of each symbol's code in `extensions` for a GPU of this capability ("9.0"); None where unreadable."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in extensions:
        if device_symbols(path) is None:  # there is none in it
            continue
        with tempfile.TemporaryDirectory(prefix="kernel-referee-cubins-") as name:
            folder = Path(name)
            if not _extracted(path, folder):
                return None
            for cubin in folder.glob(f"*.sm_{sm.replace('.', '')}*.cubin"):
                functions = code_by_symbol(content_of(cubin))
                if functions is None:
                    return None
                for symbol, code in functions.items():
                    found[symbol].add(_digest(code))
    return found


def _extracted(extension: Path, folder: Path) -> bool:
    """Whether the device code of a shared object lies in `folder` now, each piece in a file."""
    tool, until_s = find_cuobjdump(), time.monotonic() + _EXTRACT_S
    if tool is None:
        return False
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        process = subprocess.Popen([tool, "-xelf", "all", str(extension.resolve())], cwd=folder, **quiet)
    except OSError:
        return False
    with process:
        while process.poll() is None:
            if time.monotonic() > until_s or _bytes_in(folder) > _EXTRACTED_BYTES:
                process.kill()
            time.sleep(_POLL_S)
    # It may have ended by itself between two looks at how much there is.
    return process.returncode == 0 and _bytes_in(folder) <= _EXTRACTED_BYTES


def _bytes_in(folder: Path) -> int:
    total = 0
    for each in folder.iterdir():
        with suppress(OSError):  # it may be on its way
            total += each.stat().st_size
    return total


def not_of_the_build(names: Collection[str], loaded: LoadedCode, extensions: Iterable[Path], sm: str) -> dict[str, str]:
    """Those of the demangled kernel `names`, which the build has, that were loaded with other code, each with a reason.

    A kernel of which the build has no machine code for this GPU is left out: the driver makes its code of PTX.
    """
    if not names:
        return {}
    built = built_code(extensions, sm)
    if built is None:
        return dict.fromkeys(names, "has machine code in the build that cannot be read")
    bare, is_whole = {bare_name(name) for name in names}, loaded.is_whole
    codes: dict[str, set[str]] = defaultdict(set)
    for module in map(code_by_symbol, loaded.modules):
        is_whole &= module is not None
        for symbol in with_a_name_of(bare, module or {}):  # two symbols may stand for one name
            codes[symbol].add(_digest(module[symbol]))
    own = with_a_name_of(bare, built)
    name_of = demangled_names(sorted(own | codes.keys()))
    held = {name_of[symbol] for symbol in own}.intersection(names)
    others = {name_of[symbol] for symbol, digests in codes.items() if digests - built.get(symbol, set())} & held
    reasons = dict.fromkeys(others, "was loaded as other machine code than the build made")
    if not is_whole:
        missing = held - {name_of[symbol] for symbol in codes}
        reasons |= dict.fromkeys(missing, "is not among the modules that were seen to be loaded")
    return reasons


def _digest(code: memoryview) -> str:
    return hashlib.sha256(code).hexdigest()
