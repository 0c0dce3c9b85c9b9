"""The sections of an ELF file of 64 bits, as compilers for GPUs write them, too.

The file may be a candidate's: what a forged one could have a reader do is bounded.
"""

from __future__ import annotations

import struct

_MAGIC = b"\x7fELF\x02"
_SECTION = struct.Struct("<II4Q")  # name, type, flags, address, offset, size
# Thousands of names may be said to begin in one text of many megabytes.
_LONGEST_NAME, _MOST_OF_NAMES = 64 << 10, 64 << 20


def sections(elf: bytes) -> list[tuple[str, int, int]]:
    """Name, place and size in bytes of each section. Raises struct.error or ValueError for a file that is none."""
    if not elf.startswith(_MAGIC):
        raise ValueError("no ELF file of 64 bits")
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    stride, count, names_at = struct.unpack_from("<3H", elf, 0x3A)
    headers = [_SECTION.unpack_from(elf, table + stride * number) for number in range(count)]
    if names_at >= count:
        raise ValueError("no names of sections")
    *_, start, size = headers[names_at]
    names, left, found = elf[start:start + size], _MOST_OF_NAMES, []
    for at, _, _, _, place, size in headers:
        end = names.index(b"\0", at, at + _LONGEST_NAME)
        left -= end - at
        if left < 0:
            raise ValueError("more names than are looked at")
        found.append((names[at:end].decode("utf-8", "replace"), place, size))
    return found
