"""A set of inputs that lacks some pieces until the timed window of its launch opens.

Whoever reads it before then reads another draw's values in a few places that nobody can know, so that work begun on it
is wrong or has to be done again. What comes at the last moment is small, and the rest of the inputs is as cold as ever.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harness.inputs.sets import InputSet

PIECE_BYTES = 16
# One piece in so many is left out: enough that no part of the work can do without, few enough to write in microseconds.
_ONE_IN = 256
_FEWEST, MOST_PIECES = 16, 4096
_AT_ONCE = 1 << 24  # pieces of which it is found together where they differ: 256 MiB of inputs
_ALL_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Incomplete:
    """What lies in the slot of launch `index` at first: `region` (uint8, as long as the set's own).

    `places` (int64, N) are numbers of 16-byte pieces and `pieces` (int64, N×2) what belongs there.
    """

    index: int
    region: torch.Tensor
    places: torch.Tensor
    pieces: torch.Tensor

    def complete(self, slot: torch.Tensor) -> None:
        """Put the pieces where they belong in `slot` (uint8)."""
        _in_pieces(slot)[self.places] = self.pieces

    def records(self) -> torch.Tensor:
        """Place and piece of each, as int64 of N×4: the place, nothing, and the piece."""
        return torch.cat([self.places.unsqueeze(1), torch.zeros_like(self.places).unsqueeze(1), self.pieces], dim=1)


def incomplete(inputs: InputSet, other: InputSet, index: int) -> Incomplete | None:
    """`inputs` for launch `index` with pieces of `other`, another draw, in some places; None where no two draws differ.
    """
    own, others = _in_pieces(inputs.region), _in_pieces(other.region)
    places = _drawn_places(own.split(_AT_ONCE), others.split(_AT_ONCE))
    if places is None:
        return None
    region = inputs.region.clone()
    _in_pieces(region)[places] = others[places]
    return Incomplete(index, region, places, own[places])


def _drawn_places(own: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """Some of the places where two regions differ, which are given in parts; None where they do not.

    The places of one part at a time are listed: those of all take half as much memory as the inputs themselves, and more
    than 2³¹ pieces no GPU lists at once.
    """
    if len(own) == 1:
        differing = _differing(own[0], others[0]).nonzero().flatten()
        ranks = _drawn_ranks(differing.numel())
        return differing[ranks.to(differing.device)] if ranks.numel() else None
    counts = torch.stack([_differing(*pair).sum() for pair in zip(own, others)]).tolist()
    ranks, places, first, place = _drawn_ranks(sum(counts)), [], 0, 0
    for one, another, count in zip(own, others, counts):
        here = ranks[(ranks >= first) & (ranks < first + count)] - first
        if here.numel():
            differing = _differing(one, another).nonzero().flatten()
            places.append(differing[here.to(differing.device)] + place)
        first, place = first + count, place + len(one)
    return torch.cat(places) if places else None


def _differing(one: torch.Tensor, another: torch.Tensor) -> torch.Tensor:
    return (one != another).any(dim=1)


def _drawn_ranks(total: int) -> torch.Tensor:
    """Some of the numbers below `total`, each once, in order."""
    count = min(total, max(_FEWEST, min(total // _ONE_IN, MOST_PIECES)))
    # A stream of numbers of its own: PyTorch's was seeded to draw the inputs, and who sees those might follow it.
    drawn = torch.Generator().manual_seed(secrets.randbits(63))
    if total <= _ALL_AT_ONCE:
        return torch.randperm(total, generator=drawn)[:count].sort().values
    return torch.randint(total, (count,), generator=drawn).unique()  # of so many hardly one comes twice


def _in_pieces(region: torch.Tensor) -> torch.Tensor:
    return region.view(torch.int64).view(-1, PIECE_BYTES // 8)
