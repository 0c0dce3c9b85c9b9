"""What makes a call on a CPU cold: a worker writes the last-level cache over, and the judge evicts the inputs.

The judge gives a word for each launch, and looks whether it was written. The C library writes, by a function whose
address is taken as this module is imported: an operator of PyTorch's could be given another body, one with stores that
go past the cache. The processor's instruction by which the judge's own process evicts goes by physical memory: a line
of a shared region leaves the caches of all cores, and a worker can neither leave it out nor see it.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import mmap
import platform
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import torch

POLICY = "cold: 1xLLC written"
EVICTED_POLICY = "inputs evicted"
WORD_BITS = 31
_CPU_MOST_BYTES = 256 * 1024 * 1024
_SAMPLED_WORDS = 4096
# Larger pieces may be written with stores that go past the cache: glibc does so from three quarters of it on.
_PIECE_BYTES = 256 << 10
_WORD_BYTES = ctypes.sizeof(ctypes.c_wchar)
_write = ctypes.CDLL(None).wmemset
_write.argtypes, _write.restype = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_size_t], ctypes.c_void_p
# PyTorch's threads write so much more at last, by which each takes a core. Else a call finds two of them on one in up to
# half of its launches: `openmp_cpu` took 1.8 to 2.5 ms so on two cores, and 1.15 to 1.36 with it (nine runs of either).
_SETTLING_BYTES = 32 << 20
_fill = torch.Tensor.fill_
# clflush [rdi] or clflushopt [rdi]; add rdi, 64; cmp rdi, rsi; jb to the first; mfence; ret
_PLAIN, _OPTIMISED = "0fae3f", "660fae3f"
_REST = {_PLAIN: "4883c7404839f772f4", _OPTIMISED: "4883c7404839f772f3"}
_END = "0faef0c3"


class CpuCacheFlush:
    """A shared `region` (uint8) as large as a CPU's last-level cache, written over with one word of `WORD_BITS` after
    another, by `threads` of its own (None: as many as PyTorch has), since each core has caches of its own.
    """

    def __init__(self, region: torch.Tensor, threads: int | None = None) -> None:
        self._words = region.view(torch.int32)
        begin, size_bytes = region.data_ptr(), region.numel()
        most = size_bytes // _WORD_BYTES
        parts = max(1, min(torch.get_num_threads() if threads is None else threads, most))
        bounds = [begin + most * part // parts * _WORD_BYTES for part in range(parts + 1)]
        self._own, *others = (range(first, end, _PIECE_BYTES) for first, end in zip(bounds, bounds[1:]))
        self._helpers = [_Helper(part) for part in others]
        self._beside = torch.empty(min(size_bytes, _SETTLING_BYTES) // _WORD_BYTES, dtype=torch.int32)

    def run(self, word: int) -> None:
        for helper in self._helpers:
            helper.begin(word)
        _write_over(self._own, word)
        for helper in self._helpers:
            helper.wait()
        with suppress(Exception):  # a candidate may have changed it, and nothing but the places of threads hangs on it
            _fill(self._beside, 0)

    def missed(self, word: int) -> int:
        """How many of 4096 words, drawn, are not `word`: a thousandth left out is unseen once in sixty launches."""
        # PyTorch's own generator was seeded to draw the inputs, and who sees those might follow it.
        drawn = torch.Generator().manual_seed(secrets.randbits(63))
        places = torch.randint(self._words.numel(), (min(_SAMPLED_WORDS, self._words.numel()),), generator=drawn)
        return int((self._words[places] != word).sum())


class _Helper:
    """A thread that writes over its part of the region whenever it is asked to; it starts with the first word."""

    def __init__(self, part: range) -> None:
        self._part, self._words, self._done = part, SimpleQueue(), SimpleQueue()
        self._thread: threading.Thread | None = None

    def begin(self, word: int) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="cache flush", daemon=True)
            self._thread.start()
        self._words.put(word)

    def wait(self) -> None:
        self._done.get()

    def _serve(self) -> None:
        while True:
            _write_over(self._part, self._words.get())
            self._done.put(None)


def _write_over(part: range, word: int) -> None:
    for address in part:
        _write(address, word, min(part.step, part.stop - address) // _WORD_BYTES)


def fresh_word() -> int:
    """A word that nobody can guess."""
    return 1 + secrets.randbelow((1 << WORD_BITS) - 1)


def cpu_flush_buffer_bytes(llc_bytes: int) -> int:
    """What is written over on a CPU whose last-level cache has `llc_bytes`: whole words, 256 MiB at most."""
    return max(4096, min(llc_bytes, _CPU_MOST_BYTES) // 8 * 8)


def cpu_last_level_bytes() -> int:
    """Size of the largest cache that Linux reports for the first core; 32 MiB where it reports none."""
    sizes = []
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"):
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
        unit = {"K": 1024, "M": 1024**2}.get(text[-1:], 1)
        sizes.append(int(text.rstrip("KM")) * unit)
    return max(sizes, default=32 * 1024**2)


def flush_lines(region: torch.Tensor) -> None:
    """Have no core's cache hold anything of `region`; nothing happens where `can_flush_lines` is false."""
    flushing = _flushing()
    if flushing is not None and region.numel():
        flushing(region.data_ptr(), region.data_ptr() + region.numel())


def can_flush_lines() -> bool:
    """Whether this machine has the instruction (x86-64), and lets a process make code of it."""
    return _flushing() is not None


@functools.cache
def _flushing() -> Callable[[int, int], None] | None:
    instruction = _instruction()
    if instruction is None:
        return None
    code = bytes.fromhex(instruction + _REST[instruction] + _END)
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:  # a system that forbids memory which is written and executed
        return None
    memory.write(code)
    at = ctypes.c_char.from_buffer(memory)  # keeps the memory
    flushing = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(ctypes.addressof(at))
    flushing.memory = at
    return flushing


def _instruction() -> str | None:
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    lines: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return _OPTIMISED if "clflushopt" in flags else _PLAIN if "clflush" in flags else None
