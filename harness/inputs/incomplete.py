"""A set of inputs that lacks some pieces until the timed window of its launch opens.

Whoever reads it before then reads another draw's values in a few places that nobody can know, so that work begun on it
is wrong or has to be done again. What comes at the last moment is small, and the rest of the inputs is as cold as ever.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import torch

from harness.inputs.sets import InputSet

PIECE_BYTES = 16
# One piece in so many is left out: enough that no part of the work can do without, few enough to write in microseconds.
_ONE_IN = 256
_FEWEST, MOST_PIECES = 16, 4096


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
    differing = (own != others).any(dim=1).nonzero().flatten()
    count = min(differing.numel(), max(_FEWEST, min(differing.numel() // _ONE_IN, MOST_PIECES)))
    if not count:
        return None
    # A stream of numbers of its own: PyTorch's was seeded to draw the inputs, and who sees those might follow it.
    drawn = torch.Generator(differing.device).manual_seed(secrets.randbits(63))
    places = differing[torch.randperm(differing.numel(), generator=drawn, device=differing.device)[:count]]
    region = inputs.region.clone()
    _in_pieces(region)[places] = others[places]
    return Incomplete(index, region, places, own[places])


def _in_pieces(region: torch.Tensor) -> torch.Tensor:
    return region.view(torch.int64).view(-1, PIECE_BYTES // 8)
