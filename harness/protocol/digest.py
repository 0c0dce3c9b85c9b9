"""Digests of bytes, found on the device where they lie: two processes compare gigabytes without handing them over. Who
wants to can make other bytes of the same digest.
"""

from __future__ import annotations

import torch

_WORD_BYTES, _WORDS_AT_ONCE = 8, 1 << 22
_ODD = 0x9E3779B97F4A7C15  # 2⁶⁴ over the golden ratio: spreads the first sum over all 64 bits


def digest_of(region: torch.Tensor) -> str:
    """16 hex digits over bytes (uint8, whole words): two sums of the words, one weighted by position."""
    total = 0
    for piece, words in enumerate(region.view(torch.int64).split(_WORDS_AT_ONCE), 1):
        weights = torch.arange(1, 2 * words.numel(), 2, device=words.device)
        total += piece * (int(words.sum()) * _ODD + int((words * weights).sum()))
    return f"{total % (1 << 64):016x}"


def digest_of_tensor(tensor: torch.Tensor) -> str:
    """16 hex digits over the elements' bytes in the order of indices, and those of what is left behind whole words."""
    region = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    words, rest = region.split([region.numel() // _WORD_BYTES * _WORD_BYTES, region.numel() % _WORD_BYTES])
    if words.storage_offset() % _WORD_BYTES:  # a view of something else may begin within a word
        words = words.clone()
    return (digest_of(words) if words.numel() else "") + bytes(rest.tolist()).hex()
