"""What makes a call cold: the last-level cache is written over, then read clean, before each launch.

On a GPU a buffer of twice the L2 is written and another read (`protocol.flush_kernels`), so that neither the inputs nor
dirty lines of the buffer are in the cache when the timed window opens. On a CPU the last-level cache is written over
once. Both happen under a word that the judge gives for each launch, so that it can look whether they did.
"""

from __future__ import annotations

import glob
import secrets

import torch

GPU_FACTOR = 2
GPU_POLICY = "cold: 2xL2 written, 2xL2 read"
CPU_POLICY = "cold: 1xLLC written"
_CPU_MOST_BYTES = 256 * 1024 * 1024
_SAMPLED_WORDS = 4096
_fill, _get_num_threads, _set_num_threads = torch.Tensor.fill_, torch.get_num_threads, torch.set_num_threads


class CpuCacheFlush:
    """A shared `region` (uint8) as large as a CPU's last-level cache, written over with one word after another, by so
    many `threads` of PyTorch's whatever a candidate has set; None: by as many as there are.
    """

    def __init__(self, region: torch.Tensor, threads: int | None = None) -> None:
        self._words, self._threads = region.view(torch.int64), threads

    def run(self, word: int) -> None:
        threads = _get_num_threads()
        if self._threads in (None, threads):
            _fill(self._words, word)
            return
        _set_num_threads(self._threads)
        _fill(self._words, word)
        _set_num_threads(threads)

    def missed(self, word: int) -> int:
        """How many of some thousand words, drawn at random, are not `word`.

        A flush that left out a thousandth goes unnoticed once in sixty launches.
        """
        # PyTorch's own generator was seeded to draw the inputs, and who sees those might follow it.
        drawn = torch.Generator().manual_seed(secrets.randbits(63))
        places = torch.randint(self._words.numel(), (min(_SAMPLED_WORDS, self._words.numel()),), generator=drawn)
        return int((self._words[places] != word).sum())


def cpu_evictor_bytes(llc_bytes: int) -> int:
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
