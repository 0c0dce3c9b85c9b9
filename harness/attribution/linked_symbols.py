"""What a candidate's shared object takes from elsewhere, read as the dynamic loader reads it.

A loader goes by the program headers and by what is to be relocated; the table of sections is for other tools, and who
wrote the file may have cut it off or put a harmless one in its place. What cannot be read this way is not known to call
nothing.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from harness.attribution.permitted_symbols import is_permitted
from harness.protocol.installed import is_installed
from harness.sandbox.leftovers import content_of

UNREADABLE = "what cannot be read"
_MOST_BYTES, _MOST_RELOCATIONS = 256 << 20, 1_000_000
# A hostile file may say that a thousand names begin in one text of a hundred megabytes.
_LONGEST_NAME, _MOST_OF_NAMES, _MOST_ENTRIES = 64 << 10, 64 << 20, 10_000
_LOADED, _DYNAMIC = 1, 2
# What is loaded with it: what it needs, and what is asked before it for each function that it defines itself.
_NEEDED = (1, 0x7FFFFFFD, 0x7FFFFFFF)
_SEARCHED = (15, 29)  # DT_RPATH, DT_RUNPATH
_LOCAL, _HIDDEN = 0, (1, 2, 3)  # a binding and visibilities of symbols that are its own wherever it is loaded
_STRINGS, _SYMBOLS, _RELOCATIONS, _RELOCATIONS_BYTES, _CALLS_BYTES, _CALLS = 5, 6, 7, 8, 2, 23
_SYMBOL_BYTES, _RELOCATION_BYTES = 24, 24
# BLAS in its spellings. An extension's own function of such a name may lose to a library's that was loaded for all before.
_LIBRARYS = re.compile(
    r"(?i:(?:scipy_)?[sdcz](?:gemm|gemv|ger|symm|symv|hemm|hemv|syrk|syr2k|herk|trmm|trmv|trsm|trsv)(?:_?(?:64)?_?)$|"
    r"\w*cblas_|mkl_|dnnl_|openblas|armpl)"
)
# In a thread of an extension's own no profiler follows what PyTorch is called for.
_THREADS = re.compile(
    r"pthread_create$|_ZNSt6thread|thrd_create$|clone3?$|GOMP_(?:parallel|task)|__kmpc_fork|"
    r"_ZN2at\w*(?:6launch|parallel|for_?each)|_Z(?:NK?|TVN)3c10(?:10ThreadPool|14TaskThreadPool)"
)
# An operator of PyTorch's but for those that reserve memory, move it, or look at it otherwise.
_OPERATOR = re.compile(
    r"_ZNK?2at4_ops\d+(?!\d)(?!(?:empty|zeros|ones|full|new|arange|as_strided|view|reshape|transpose|t|contiguous|to|_to_copy|"
    r"copy|clone|detach|slice|select|expand|permute|squeeze|unsqueeze|flatten|narrow|item|_local_scalar_dense|resize|"
    r"zero|fill|alias|is|size|stride|scalar_tensor|split|chunk|unbind|movedim|moveaxis|swapaxes|swapdims|diagonal|"
    r"unfold|unflatten|cat|concat|stack|constant_pad_nd|pad)(?:_\w*)?4callE)\w+4callE"
)
# What extensions are linked to: the language's own, threads, Python, PyTorch, CUDA's runtime.
_USUAL = re.compile(
    r"(?:lib(?:c|m|dl|rt|util|pthread|gcc_s|stdc\+\+|c\+\+(?:abi)?|unwind|atomic|mvec|quadmath|gomp|i?omp5?|"
    r"tbb\w*|numa|python[\w.]*?|c10\w*|torch\w*|shm|cudart|cuda|nvrtc|nvToolsExt)|ld-linux[\w-]*)"
    r"(?:-[0-9a-f]+)?\.so(?:[.\d]*)$"
)
_NO_LIBRARY = (struct.error, LookupError, ValueError, OverflowError)


class Links(NamedTuple):
    """The names that a shared object takes from elsewhere; those that it uses of its own which another library's could
    stand in for; the libraries that are loaded with it, and the folders that these are searched in first.
    """

    taken: set[str]
    own: set[str]
    libraries: list[str]
    searched: list[str]


def foreign_functions(*extensions: Path) -> list[str]:
    """What shared objects of one candidate take from elsewhere and is not `permitted` what counts as its own work, and what
    they are linked to that not every extension is, so that nothing is known of what they call. `UNREADABLE` for what no
    loader would load.

    All that they take counts together, since one may call another by an address that Python handed on.
    """
    taken: set[str] = set()
    foreign: set[str] = set()
    for extension in extensions:
        try:
            links = _links(content_of(extension, _MOST_BYTES + 1))
        except _NO_LIBRARY:
            foreign.add(UNREADABLE)
            continue
        taken |= links.taken
        places = {place for each in links.searched for place in each.split(":") if place and not is_installed(place)}
        foreign |= {name for name in links.own if _LIBRARYS.match(name)} | {f"libraries in {place}" for place in places}
        foreign |= {name for name in links.libraries if not _USUAL.match(name)}
    return sorted(foreign | _foreign_of(taken))


def _foreign_of(taken: Collection[str]) -> set[str]:
    foreign = {name for name in taken if not is_permitted(name)}
    if any(_THREADS.match(name) for name in taken):
        foreign |= {name for name in taken if _OPERATOR.match(name)}
    return foreign


def _links(elf: bytes) -> Links:
    """What the loader looks up and loads for `elf` (ELF64, little-endian). Raises ValueError and its like."""
    if elf[:6] != b"\x7fELF\x02\x01" or len(elf) > _MOST_BYTES:
        raise ValueError("no library that is looked into")
    (headers_at,), (size, count) = struct.unpack_from("<Q", elf, 32), struct.unpack_from("<HH", elf, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", elf, headers_at + index * size) for index in range(count)]
    loaded = [(address, offset, length) for kind, _, offset, address, _, length, _, _ in headers if kind == _LOADED]
    dynamic = [(address, length) for kind, _, _, address, _, length, _, _ in headers if kind == _DYNAMIC]

    def place(address: int) -> int:
        for begin, offset, length in reversed(loaded):  # of what lies on top of one another the last, as in memory
            if begin <= address < begin + length:
                return address - begin + offset
        raise ValueError("an address that is in no segment")

    tags, needed_at, searched_at, entries_at = {}, [], [], place(dynamic[-1][0])
    for at in range(entries_at, entries_at + 16 * _MOST_ENTRIES, 16):
        tag, value = struct.unpack_from("<qQ", elf, at)
        if not tag:
            break
        tags[tag] = value
        needed_at += [value] if tag in _NEEDED else []
        searched_at += [value] if tag in _SEARCHED else []
    else:
        raise ValueError("more entries than are looked at")
    symbols_at, names_at = place(tags[_SYMBOLS]), place(tags[_STRINGS])
    used: set[int] = set()
    for table, length in ((_RELOCATIONS, _RELOCATIONS_BYTES), (_CALLS, _CALLS_BYTES)):
        if tags.get(length):
            used |= _symbols_in(elf, place(tags[table]), tags[length])
    left = _MOST_OF_NAMES

    def name(offset: int) -> str:
        nonlocal left
        begin = names_at + offset
        end = elf.index(b"\0", begin, begin + _LONGEST_NAME)
        left -= end - begin
        if left < 0:
            raise ValueError("more names than are looked at")
        return elf[begin:end].decode(errors="replace")

    taken, own = set(), set()
    for index in sorted(used - {0}):
        name_at, kind, other, section = struct.unpack_from("<IBBH", elf, symbols_at + index * _SYMBOL_BYTES)
        if section == 0:
            taken.add(name(name_at))
        elif kind >> 4 != _LOCAL and other & 3 not in _HIDDEN:
            own.add(name(name_at))
    return Links(taken, own, [name(offset) for offset in needed_at], [name(offset) for offset in searched_at])


def _symbols_in(elf: bytes, begin: int, length: int) -> set[int]:
    if length > _MOST_RELOCATIONS * _RELOCATION_BYTES:
        raise ValueError("more relocations than are looked at")
    return {struct.unpack_from("<I", elf, at + 12)[0] for at in range(begin, begin + length, _RELOCATION_BYTES)}
