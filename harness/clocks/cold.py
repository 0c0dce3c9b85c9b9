"""What makes a call cold: the last-level cache is written over, then read clean, before each launch.

On a GPU a buffer of twice the L2 is written and another read, so that neither the inputs nor dirty lines of the
buffer are in the cache when the timed window opens. On a CPU the last-level cache is written over once.
"""

from __future__ import annotations

import glob

import torch

GPU_POLICY = "cold: 2xL2 written, 2xL2 read"
CPU_POLICY = "cold: 1xLLC written"
_CPU_MOST_BYTES = 256 * 1024 * 1024
_zero = torch.Tensor.zero_
_amax = torch.amax


class Evictor:
    """Buffers that push everything else out of the cache; `run` works in order of the current stream."""

    def __init__(self, cache_bytes: int, device: torch.device, *, read_back: bool) -> None:
        words = max(1024, cache_bytes // 4)
        self._written = torch.zeros(words, dtype=torch.int32, device=device)
        self._read = torch.zeros(words, dtype=torch.int32, device=device) if read_back else None
        self._sink = torch.zeros((), dtype=torch.int32, device=device)

    def run(self) -> None:
        _zero(self._written)
        if self._read is not None:
            _amax(self._read, dim=0, out=self._sink)


def gpu_evictor(l2_bytes: int, device: torch.device) -> Evictor:
    return Evictor(2 * l2_bytes, device, read_back=True)


def cpu_evictor(llc_bytes: int) -> Evictor:
    return Evictor(min(llc_bytes, _CPU_MOST_BYTES), torch.device("cpu"), read_back=False)


def cpu_last_level_bytes() -> int:
    """Size of the largest cache that Linux reports for the first core; 32 MiB where it reports none."""
    sizes = []
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"):
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
        unit = {"K": 1024, "M": 1024**2}.get(text[-1:], 1)
        sizes.append(int(text.rstrip("KM")) * unit)
    return max(sizes, default=32 * 1024**2)
