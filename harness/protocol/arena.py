"""Host memory that judge and worker both see: one anonymous file, inherited by descriptor.

Its first page holds the flags that order launches on a GPU; the rest is cut into regions. It is sealed against
shrinking, which would kill the judge, and against further seals, which would hold for all later workers.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os

import torch

FLAGS_BYTES = mmap.PAGESIZE
TURN_BYTE, GO_BYTE, KEY_BYTE, WORD_BYTE, MAIL_BYTE, WINDOW_BYTE, FLUSHED_BYTE = 0, 64, 128, 144, 192, 256, 320
OPENING_BYTE = 384  # of a key, and behind it how many pieces of the inputs it brings
KEY_BYTES = 16
SECRET_BYTES = KEY_BYTES + 8  # the key and, right behind it, the word for the flush
_F_ADD_SEALS, _F_SEAL_SEAL, _F_SEAL_SHRINK = 1033, 0x0001, 0x0002
_KEEP_SIZE_AND_PUNCH_HOLE = 0x01 | 0x02


class Arena:
    """A growable shared file and the mappings made of it in this process."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._maps: dict[tuple[int, int], torch.Tensor] = {}
        self._named: dict[str, dict[str, int]] = {}
        self.end = FLAGS_BYTES

    @staticmethod
    def create() -> Arena:
        """A fresh arena of one page of flags. Raises OSError where the system has no sealed anonymous files."""
        descriptor = os.memfd_create("launches", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, FLAGS_BYTES)
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _F_SEAL_SHRINK | _F_SEAL_SEAL)
        return Arena(descriptor)

    def grow(self, size_bytes: int) -> int:
        """Add `size_bytes` (whole pages) at the end; returns their offset. The judge alone calls this."""
        offset = self.end
        self.end += -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        if os.fstat(self.descriptor).st_size < self.end:  # a worker may have let it grow, and what has cannot shrink
            os.ftruncate(self.descriptor, self.end)
        return offset

    def reclaim(self) -> None:
        """Give back the memory of what a worker has written behind the last region; it would stay for the whole run."""
        behind = os.fstat(self.descriptor).st_size - self.end
        if behind > 0:
            punch = ctypes.CDLL(None, use_errno=True).fallocate
            punch.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
            punch(self.descriptor, _KEEP_SIZE_AND_PUNCH_HOLE, self.end, behind)

    def named(self, name: str, size_bytes: int) -> dict[str, int]:
        """The region called `name` as {"offset", "bytes"}, at least `size_bytes` long; used over and over."""
        region = self._named.get(name)
        if region is None or region["bytes"] < size_bytes:
            region = self._named[name] = {"offset": self.grow(size_bytes), "bytes": size_bytes}
        return region

    def map(self, offset: int, bytes: int) -> torch.Tensor:
        """A one-dimensional uint8 tensor over the given bytes; mapped once for each region."""
        if (offset, bytes) not in self._maps:
            mapping = mmap.mmap(self.descriptor, bytes, offset=offset)
            self._maps[offset, bytes] = torch.frombuffer(mapping, dtype=torch.uint8)
        return self._maps[offset, bytes]

    def flags(self) -> Flags:
        return Flags(mmap.mmap(self.descriptor, FLAGS_BYTES))


class Flags:
    """The page of words that order launches: `turn`, `flushed` and `mail` are the worker's, the others the judge's.

    `go` makes a launch's inputs readable, with a key for them and a word to flush the cache with; `flushed` says that
    it was flushed, and `window` lets the timed window open: then, or later where the judge wants to know what a
    candidate does with inputs that lie there before its time. With it comes the key of the last pieces of inputs that
    were incomplete until then, and their number, which is zero for nearly all.

    `mail` counts the frames that the worker has sent. A judge that waits for a turn looks at it without a system call:
    one after the other would never let the threads in that drain what candidates print.
    """

    def __init__(self, mapping: mmap.mmap) -> None:
        self._mapping = mapping
        self._bytes = (ctypes.c_ubyte * FLAGS_BYTES).from_buffer(mapping)
        self.address = ctypes.addressof(self._bytes)
        self._turn = ctypes.c_uint32.from_address(self.address + TURN_BYTE)
        self._go = ctypes.c_uint32.from_address(self.address + GO_BYTE)
        self._mail = ctypes.c_uint32.from_address(self.address + MAIL_BYTE)
        self._window = ctypes.c_uint32.from_address(self.address + WINDOW_BYTE)
        self._flushed = ctypes.c_uint32.from_address(self.address + FLUSHED_BYTE)
        self._word = ctypes.c_uint64.from_address(self.address + WORD_BYTE)
        self._pieces = ctypes.c_uint32.from_address(self.address + OPENING_BYTE + KEY_BYTES)

    @property
    def turn(self) -> int:
        return self._turn.value

    @property
    def flushed(self) -> int:
        return self._flushed.value

    @property
    def mail(self) -> int:
        return self._mail.value

    def count_mail(self) -> None:
        """The worker has sent one more frame."""
        self._mail.value += 1

    def reset(self) -> None:
        """Back to zero, before a new worker counts from one."""
        for word in (self._turn, self._mail, self._go, self._window, self._flushed):
            word.value = 0

    @property
    def window(self) -> int:
        return self._window.value

    def release(self, sequence: int, key: bytes, word: int = 0) -> None:
        """Let the launch numbered `sequence` go ahead as far as its window; `key` and `word` are in place before."""
        ctypes.memmove(self.address + KEY_BYTE, key, KEY_BYTES)
        self._word.value = word
        self._go.value = sequence

    def let_go(self, sequence: int) -> None:
        """Let a stream go on that waits for `sequence` and needs neither key nor word."""
        self._go.value = sequence

    def open_window(self, sequence: int, key: bytes = bytes(KEY_BYTES), pieces: int = 0) -> None:
        """Let the timed window of `sequence` open; key and number of the last pieces are in place before."""
        ctypes.memmove(self.address + OPENING_BYTE, key, KEY_BYTES)
        self._pieces.value = pieces
        self._window.value = sequence
