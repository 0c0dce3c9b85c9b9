"""Inputs that lack pieces until the timed window opens."""

from __future__ import annotations

import pytest
import torch

from harness.reference.inputs.late_inputs import PIECE_BYTES, _one_of_each_part, late_inputs
from harness.reference.inputs.sets import draw_set

CPU = torch.device("cpu")


def triangles(side):
    return lambda: [torch.tril(torch.rand(side, side)), torch.arange(side)]


def two_draws(side):
    return [draw_set(triangles(side), CPU) for _ in range(2)]


def changed_pieces(first, second):
    return (first.view(torch.int64) != second.view(torch.int64)).view(-1, PIECE_BYTES // 8).any(dim=1)


@pytest.mark.parametrize(("side", "fewest", "most"), [(8, 2, 16), (256, 28, 36), (2048, 2040, 2060)])
def test_some_pieces_of_another_draw_lie_there_first_and_no_others(side, fewest, most):
    own, other = two_draws(side)
    lacking = late_inputs(own, other, 3)
    changed = changed_pieces(lacking.lacking(own), own.region)
    assert lacking.index == 3
    assert sorted(lacking.places.tolist()) == changed.nonzero().flatten().tolist()
    assert fewest <= int(changed.sum()) <= most
    assert not (changed_pieces(lacking.lacking(own), other.region) & changed).any()


def test_places_are_drawn_alike_from_all_that_differ():
    side = 600  # 256 of so many are drawn one by one, and where two are the same there is one less
    own, other = (draw_set(lambda: [torch.rand(side, side)], CPU) for _ in range(2))
    places = torch.cat([late_inputs(own, other, 0).places for _ in range(40)])
    quarters = torch.bincount(places * 4 // (side * side // 4), minlength=4)
    assert len(quarters) == 4 and (quarters / len(places) - 0.25).abs().max() < 0.03


def test_completed_it_is_the_set_itself_and_the_set_was_never_touched():
    own, other = two_draws(64)
    before = own.region.clone()
    lacking = late_inputs(own, other, 0)
    slot = lacking.lacking(own)
    lacking.complete(slot)
    assert torch.equal(slot, own.region)
    assert torch.equal(own.region, before)


def test_zeros_that_every_draw_has_stay_zeros_and_what_is_the_same_in_each_stays_too():
    own, other = two_draws(64)
    first = own.tensors(late_inputs(own, other, 0).lacking(own))
    assert not first[0].triu(1).any()
    assert torch.equal(first[1], torch.arange(64))


def test_nobody_knows_the_places():
    own, other = two_draws(256)
    torch.manual_seed(5)
    first = late_inputs(own, other, 0)
    torch.manual_seed(5)
    second = late_inputs(own, other, 0)
    assert sorted(first.places.tolist()) != sorted(second.places.tolist())


def test_inputs_that_are_the_same_in_each_draw_lack_nothing():
    own, other = (draw_set(lambda: [torch.ones(32, 32)], CPU) for _ in range(2))
    assert late_inputs(own, other, 0) is None


def test_records_hold_the_place_and_the_piece():
    own, other = two_draws(64)
    lacking = late_inputs(own, other, 0)
    region = lacking.lacking(own).view(torch.int64).view(-1, 2)
    for place, nothing, *piece in lacking.records().tolist():
        assert nothing == 0
        region[place] = torch.tensor(piece)
    assert torch.equal(region.flatten(), own.region.view(torch.int64))


@pytest.mark.parametrize("same", [0.0, 0.999, 1.0], ids=["all differ", "few differ", "none differs"])
def test_of_a_large_draw_pieces_are_drawn_first_and_held_against_each_other_then(monkeypatch, same):
    monkeypatch.setattr("harness.reference.inputs.late_inputs._LOOKED_THROUGH", 1 << 10)
    monkeypatch.setattr("harness.reference.inputs.late_inputs._DRAWN_PIECES", 1 << 11)
    own = draw_set(lambda: [torch.rand(1 << 20)], CPU)
    other = draw_set(lambda: [torch.where(torch.arange(1 << 20) < same * (1 << 20), own.tensors()[0], torch.rand(1 << 20))], CPU)
    lacking = late_inputs(own, other, 0)
    if same == 1.0:
        assert lacking is None
        return
    changed = changed_pieces(lacking.lacking(own), own.region)
    assert sorted(lacking.places.tolist()) == changed.nonzero().flatten().tolist()
    assert 1 <= int(changed.sum()) <= 1024
    assert int(changed.nonzero().flatten()[0]) >= same * len(changed) - 1


def test_of_large_inputs_one_piece_of_each_part_is_drawn_and_none_is_safe():
    drawn = torch.stack([_one_of_each_part(10, 4) for _ in range(200)])
    assert (drawn.diff(dim=1) > 0).all(), "all of a draw differ"
    assert [sorted(set(part.tolist())) for part in drawn.T] == [[0, 1], [2, 3, 4], [5, 6], [7, 8, 9]]
