"""Pieces of outputs as they were when their launches had ended, held against what is there once the queue has ended.

What a worker computes late it must also hand over late. Pieces of a launch's outbox are copied before the next launch
goes; on a GPU by a copy engine, which waits for no kernel and for no switch between processes. There is one in each of 64
equal parts, at a place that is drawn: of one piece as large as all of them, a stripe that is left for later is mostly
missed. An outbox that is written to after that was not filled inside the launch's window.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence
from typing import NamedTuple

import torch

_PARTS, _PIECE_BYTES = 64, 16 << 10


class _Pieces(NamedTuple):
    """The launch, where its pieces begin, how long each is, and what was there."""

    index: int
    begins: list[int]
    size: int
    held: torch.Tensor


class OutputSnapshots:
    """The pieces of one queue. On a GPU (`device` is one) they are copied to pinned memory on a stream of its own."""

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._stream = torch.cuda.Stream(device) if self._on_gpu else None
        self._spare: list[torch.Tensor] = []
        self._taken: list[_Pieces] = []

    def forget(self) -> None:
        """Begin a new queue."""
        self._spare += [each.held for each in self._taken]
        self._taken = []

    def take(self, index: int, outbox: torch.Tensor) -> None:
        """Copy pieces of the outbox (uint8) of launch `index`; they are there when this returns."""
        begins, size = _places(outbox.numel())
        size_bytes = _PARTS * _PIECE_BYTES
        room = self._spare.pop() if self._spare else torch.empty(size_bytes, dtype=torch.uint8, pin_memory=self._on_gpu)
        with torch.cuda.stream(self._stream) if self._on_gpu else contextlib.nullcontext():
            for number, begin in enumerate(begins):
                room[number * size: (number + 1) * size].copy_(outbox[begin: begin + size], non_blocking=True)
        if self._stream is not None:
            self._stream.synchronize()
        self._taken.append(_Pieces(index, begins, size, room))

    def changed(self, outboxes: Sequence[torch.Tensor]) -> list[int]:
        """The launches whose outbox no longer holds what it held; `outboxes` as they are at the queue's end."""
        return [each.index for each in self._taken if not _still_holds(outboxes[each.index], each)]


def _places(size_bytes: int) -> tuple[list[int], int]:
    """Where the pieces of so many bytes begin, and how long each is; all of them together where they are no more."""
    if size_bytes <= _PARTS * _PIECE_BYTES:
        return [0], size_bytes
    bounds = [size_bytes * part // _PARTS for part in range(_PARTS + 1)]
    return [begin + secrets.randbelow(end - begin - _PIECE_BYTES + 1) for begin, end in zip(bounds, bounds[1:])], _PIECE_BYTES


def _still_holds(outbox: torch.Tensor, pieces: _Pieces) -> bool:
    now = torch.cat([outbox[begin: begin + pieces.size] for begin in pieces.begins]).cpu()
    return torch.equal(now, pieces.held[: len(pieces.begins) * pieces.size])
