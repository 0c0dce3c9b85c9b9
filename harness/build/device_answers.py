"""What a candidate hears of its device where there is none: facts of the GPU that the run is for, or of a card of the
architecture, where it is only compiled or Triton's interpreter runs it. `protocol.stand_in_gpu` gives the answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_WARP, _MOST_THREADS_OF_BLOCK, _REGISTERS_OF_SM, _SHARED_OF_BLOCK = 32, 1024, 65536, 48 << 10


@dataclass(frozen=True)
class DeviceFacts:
    """What is known of a GPU before it is opened; `arch` is like "9.0" or "9.0a", sizes are in bytes."""

    name: str
    arch: str
    sm_count: int
    memory_bytes: int
    l2_bytes: int

    def properties(self) -> dict[str, Any]:
        """Its properties under PyTorch's names for them."""
        major, minor = (int(part) for part in self.arch.rstrip("af").split("."))
        shared_kib, threads = _OF_SM.get((major, minor), _OF_SM[max(known for known in _OF_SM if known[0] <= max(major, 7))])
        return {
            "name": self.name, "major": major, "minor": minor, "multi_processor_count": self.sm_count,
            "total_memory": self.memory_bytes, "L2_cache_size": self.l2_bytes, "warp_size": _WARP,
            "shared_memory_per_block": _SHARED_OF_BLOCK,
            "shared_memory_per_block_optin": (shared_kib if major == 7 else shared_kib - 1) << 10,
            "shared_memory_per_multiprocessor": shared_kib << 10, "regs_per_multiprocessor": _REGISTERS_OF_SM,
            "max_threads_per_multi_processor": threads, "max_threads_per_block": _MOST_THREADS_OF_BLOCK,
            "is_integrated": 0, "is_multi_gpu_board": 0, "gcnArchName": "",
        }


# KiB of shared memory and threads of a multiprocessor, by compute capability (CUDA C++ Programming Guide, Technical
# Specifications per Compute Capability). One that is not here is answered for as the next one below it.
_OF_SM = {
    (7, 0): (96, 2048), (7, 5): (64, 1024), (8, 0): (164, 2048), (8, 6): (100, 1536), (8, 7): (164, 1536),
    (8, 9): (100, 1536), (9, 0): (228, 2048), (10, 0): (228, 2048), (10, 3): (228, 2048), (12, 0): (100, 1536),
}
# A card of each architecture, from its datasheet: name, multiprocessors, GiB of memory, MiB of L2.
_CARDS = {
    "7.0": ("Tesla V100-SXM2-32GB", 80, 32, 6), "7.5": ("Tesla T4", 40, 15, 4),
    "8.0": ("NVIDIA A100-SXM4-80GB", 108, 80, 40), "8.6": ("NVIDIA GeForce RTX 3090", 82, 24, 6),
    "8.9": ("NVIDIA L40S", 142, 48, 96), "9.0": ("NVIDIA H100 80GB HBM3", 132, 80, 50),
    "10.0": ("NVIDIA B200", 148, 180, 126), "12.0": ("NVIDIA GeForce RTX 5090", 170, 32, 96),
}


def card_of(arch: str) -> DeviceFacts | None:
    """A card of this architecture; None where none is known."""
    known = _CARDS.get(arch.rstrip("af"))
    if known is None:
        return None
    name, sm_count, memory_gib, l2_mib = known
    return DeviceFacts(name, arch, sm_count, memory_gib << 30, l2_mib << 20)
