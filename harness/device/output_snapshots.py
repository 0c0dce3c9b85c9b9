"""Pieces of outputs as they were when their launches had ended, held against what is there once the queue has ended.

What a worker computes late it must also hand over late. A piece of a launch's outbox, from a place that is drawn, is
copied before the next launch goes; on a GPU by a copy engine, which waits for no kernel and for no switch between
processes. An outbox that is written to after that was not filled inside the launch's window.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence

import torch

_PIECE_BYTES = 1 << 20


class OutputSnapshots:
    """The pieces of one queue. On a GPU (`device` is one) each is copied to pinned memory on a stream of its own."""

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._stream = torch.cuda.Stream(device) if self._on_gpu else None
        self._spare: list[torch.Tensor] = []
        self._pieces: list[tuple[int, int, torch.Tensor]] = []

    def forget(self) -> None:
        """Begin a new queue."""
        self._spare += [piece for _, _, piece in self._pieces]
        self._pieces = []

    def take(self, index: int, outbox: torch.Tensor) -> None:
        """Copy a piece of the outbox (uint8) of launch `index`; it is there when this returns."""
        size = min(_PIECE_BYTES, outbox.numel())
        offset = secrets.randbelow(outbox.numel() - size + 1)
        room = self._spare.pop() if self._spare else torch.empty(
            _PIECE_BYTES, dtype=torch.uint8, pin_memory=self._on_gpu
        )
        with torch.cuda.stream(self._stream) if self._on_gpu else contextlib.nullcontext():
            room[:size].copy_(outbox[offset: offset + size], non_blocking=True)
        if self._stream is not None:
            self._stream.synchronize()
        self._pieces.append((index, offset, room))

    def changed(self, outboxes: Sequence[torch.Tensor]) -> list[int]:
        """The launches whose outbox no longer holds what it held; `outboxes` as they are at the queue's end."""
        if not self._pieces:
            return []
        later = torch.stack([outboxes[index][offset: offset + _PIECE_BYTES] for index, offset, _ in self._pieces]).cpu()
        return [
            index for (index, _, room), piece in zip(self._pieces, later) if not torch.equal(piece, room[: len(piece)])
        ]
