"""A set of inputs that lacks some pieces until the timed window of its launch opens.

Whoever reads it before then reads another draw's values in a few places that nobody can know, so that work begun on it
is wrong or has to be done again. What comes at the last moment is small, and the rest of the inputs is as cold as ever.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import torch

from harness.reference.inputs.sets import InputSet, Inputs

PIECE_BYTES = 16
# One piece in so many is left out: enough that no part of the work can do without, few enough to write in microseconds.
_ONE_IN = 256
_FEWEST, MOST_PIECES = 16, 4096
# Of larger inputs pieces are drawn first and held against each other then: a list of all that differ is half as large.
_LOOKED_THROUGH = 1 << 22
_DRAWN_PIECES = 64 * MOST_PIECES


@dataclass(frozen=True)
class LateInputs:
    """What lies in the slot of launch `index` at first, and what belongs there. `places` (int64, N) are numbers of
    16-byte pieces, `pieces` (int64, N×2) what belongs there, and `others` what another draw has there.
    """

    index: int
    places: torch.Tensor
    pieces: torch.Tensor
    others: torch.Tensor

    def lacking(self, inputs: Inputs) -> torch.Tensor:
        """The bytes of `inputs` (uint8) with the other draw's pieces in these places."""
        region = inputs.region.clone() if isinstance(inputs, InputSet) else inputs.region  # which was drawn for this look
        _in_pieces(region)[self.places] = self.others
        return region

    def complete(self, slot: torch.Tensor) -> None:
        """Put the pieces where they belong in `slot` (uint8)."""
        _in_pieces(slot)[self.places] = self.pieces

    def records(self) -> torch.Tensor:
        """Place and piece of each, as int64 of N×4: the place, nothing, and the piece."""
        return torch.cat([self.places.unsqueeze(1), torch.zeros_like(self.places).unsqueeze(1), self.pieces], dim=1)


def late_inputs(inputs: Inputs, other: Inputs, index: int) -> LateInputs | None:
    """`inputs` for launch `index` with some pieces of `other`, another draw; None where no two draws differ."""
    count = inputs.size_bytes // PIECE_BYTES
    if count <= _LOOKED_THROUGH:
        return _of_those(_differing(inputs, other, slice(None)), count, inputs, other, index)
    drawn = _one_of_each_part(count, _DRAWN_PIECES)
    own, others = _pieces_at(inputs, drawn), _pieces_at(other, drawn)
    differing = (own != others).any(dim=1).nonzero().flatten()
    if differing.numel() < _FEWEST:  # so rare that all of them are looked for, a part of the inputs after the other
        parts = [slice(start, start + _LOOKED_THROUGH) for start in range(0, count, _LOOKED_THROUGH)]
        piece_numbers = torch.cat([_differing(inputs, other, part)[:MOST_PIECES] + part.start for part in parts])
        return _of_those(piece_numbers, piece_numbers.numel(), inputs, other, index)
    chosen = _some_of(differing, count)
    return LateInputs(index, drawn.to(chosen.device)[chosen], own[chosen], others[chosen])


def _of_those(differing: torch.Tensor, of: int, inputs: Inputs, other: Inputs, index: int) -> LateInputs | None:
    places = _some_of(differing, min(of, differing.numel()))
    return LateInputs(index, places, _pieces_at(inputs, places), _pieces_at(other, places)) if places.numel() else None


def _differing(inputs: Inputs, other: Inputs, part: slice) -> torch.Tensor:
    """The numbers within `part` of the pieces in which two draws differ."""
    return (_in_pieces(inputs.region)[part] != _in_pieces(other.region)[part]).any(dim=1).nonzero().flatten()


def _pieces_at(inputs: Inputs, places: torch.Tensor) -> torch.Tensor:
    pieces = _in_pieces(inputs.region)
    return pieces[places.to(pieces.device)]


def _some_of(differing: torch.Tensor, of: int) -> torch.Tensor:
    """Those that are left out, by chance: one in `_ONE_IN` of `of`."""
    count = min(differing.numel(), max(_FEWEST, min(of // _ONE_IN, MOST_PIECES)))
    order = torch.randperm(differing.numel(), generator=_generator(differing.device), device=differing.device)
    return differing[order[:count]]


def _one_of_each_part(count: int, parts: int) -> torch.Tensor:
    """A number below `count` from each of so many parts of about the same size (int64, on the CPU), so that all differ. To draw
    262,144 from the whole and drop the doubles took 18 ms beside an H200, where this takes 2 ms on two cores.
    """
    edges = torch.arange(parts + 1) * count // parts
    return edges[:-1] + torch.randint(1 << 62, (parts,), generator=_generator(torch.device("cpu"))) % edges.diff()


def _generator(device: torch.device) -> torch.Generator:
    """A stream of numbers of its own: PyTorch's was seeded to draw the inputs, and who sees those might follow it."""
    return torch.Generator(device).manual_seed(secrets.randbits(63))


def _in_pieces(region: torch.Tensor) -> torch.Tensor:
    return region.view(torch.int64).view(-1, PIECE_BYTES // 8)
