"""The machine code that a worker loaded into the GPU, and whether a kernel of the build's name is the build's.

A kernel is told by its name, and two modules may have one of the same. So each module that was loaded is kept as the driver
was given it, and of a name that counts as the build's all code that was loaded under it must be code that the build made.
"""

from __future__ import annotations

import hashlib
import struct
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.attribution.demangling import demangled_names
from harness.attribution.device_code import find_cuobjdump
from harness.attribution.kernel_names import bare_name
from harness.attribution.symbols import with_a_name_of
from harness.sandbox.leftovers import content_of

_WORD_BYTES = 8
_TEXT = b".text."
_EXTRACT_S, _LARGEST_CUBIN_BYTES, _MOST_CUBINS = 60.0, 64 << 20, 2000
_NO_ELF = (struct.error, IndexError, ValueError, OverflowError)


@dataclass(frozen=True)
class LoadedCode:
    """Modules as they were loaded; it `is_whole` where none is missing."""

    modules: Sequence[bytes]
    is_whole: bool


def read_modules(content: bytes, count: int, *, is_whole: bool) -> LoadedCode:
    """The modules that a recorder left, each behind its length and filled up to whole words."""
    modules, at = [], 0
    for _ in range(count):
        if at + _WORD_BYTES > len(content):
            return LoadedCode(modules, is_whole=False)
        (length,) = struct.unpack_from("<Q", content, at)
        at += _WORD_BYTES
        if length > len(content) - at:
            return LoadedCode(modules, is_whole=False)
        modules.append(content[at : at + length])
        at += -(-length // _WORD_BYTES) * _WORD_BYTES
    return LoadedCode(modules, is_whole)


def code_by_symbol(cubin: bytes) -> dict[str, memoryview]:
    """The machine code of each function in device code in ELF, by its symbol; none of what is no such file."""
    try:
        if cubin[:6] != b"\x7fELF\x02\x01":
            return {}
        (sections_at,) = struct.unpack_from("<Q", cubin, 40)
        size, count, names_in = struct.unpack_from("<HHH", cubin, 58)
        headers = [struct.unpack_from("<IIQQQQ", cubin, sections_at + index * size) for index in range(count)]
        names_at = headers[names_in][4]
        found, code = {}, memoryview(cubin)
        for name_at, _, _, _, offset, length in headers:
            name = cubin[names_at + name_at : cubin.index(b"\0", names_at + name_at)]
            if name.startswith(_TEXT):
                found[name[len(_TEXT):].decode(errors="replace")] = code[offset : offset + length]
        return found
    except _NO_ELF:
        return {}


def built_code(extensions: Iterable[Path], sm: str) -> dict[str, set[str]] | None:
    """The code of each symbol that `extensions` have for a GPU of this compute capability ("9.0"); None where it cannot be
    taken out of them.
    """
    tool = find_cuobjdump()
    if tool is None:
        return None
    found: dict[str, set[str]] = defaultdict(set)
    for path in extensions:
        with tempfile.TemporaryDirectory(prefix="kernel-referee-cubins-") as folder:
            words = [tool, "-xelf", "all", str(path.resolve())]
            try:
                subprocess.run(words, cwd=folder, capture_output=True, timeout=_EXTRACT_S, check=False)
            except (OSError, subprocess.TimeoutExpired):
                return None
            for cubin in sorted(Path(folder).glob(f"*.sm_{sm.replace('.', '')}*.cubin"))[:_MOST_CUBINS]:
                for symbol, code in code_by_symbol(content_of(cubin, _LARGEST_CUBIN_BYTES)).items():
                    found[symbol].add(_digest(code))
    return found


def not_of_the_build(
    names: Collection[str], loaded: LoadedCode, extensions: Iterable[Path], sm: str
) -> Mapping[str, str]:
    """Those of the demangled kernel `names`, which the build has, that were loaded with other code, each with a reason.

    A kernel that the build has as PTX alone is left out: its code is made by the driver.
    """
    built = built_code(extensions, sm) if names else None
    if built is None:
        return {}
    bare = {bare_name(name) for name in names}
    codes: dict[str, set[str]] = defaultdict(set)
    for module in map(code_by_symbol, loaded.modules):
        for symbol in with_a_name_of(bare, module):  # two symbols may stand for one name
            codes[symbol].add(_digest(module[symbol]))
    own = with_a_name_of(bare, built)
    name_of = demangled_names(sorted(own | codes.keys()))
    held = {name_of[symbol] for symbol in own}.intersection(names)
    others = {name_of[symbol] for symbol, digests in codes.items() if digests - built.get(symbol, set())} & held
    reasons = dict.fromkeys(others, "was loaded as other machine code than the build made")
    if not loaded.is_whole:
        missing = held - {name_of[symbol] for symbol in codes}
        reasons |= dict.fromkeys(missing, "is not among the modules that were seen to be loaded")
    return reasons


def _digest(code: memoryview) -> str:
    return hashlib.sha256(code).hexdigest()
