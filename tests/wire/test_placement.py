"""Where outputs and temporaries lie, drawn anew for each queue."""

from __future__ import annotations

import pytest
import torch

from harness.wire import placement
from harness.wire.placement import Placement

CPU = torch.device("cpu")


def sizes_held(drawn, of):
    place = Placement(CPU)
    place.draw(of)
    drawn += [block.numel() for block in place._held]


@pytest.mark.parametrize(("chance", "held"), [(0, [512]), (3, [1000, 1000, 1000, 64, 64, 64, 2048])])
def test_up_to_three_blocks_of_each_output_are_held_and_a_padding(monkeypatch, chance, held):
    monkeypatch.setattr(placement, "_randbelow", lambda below: min(chance, below - 1))
    drawn = []
    sizes_held(drawn, [1000, 64])
    assert drawn == held


def test_each_number_of_blocks_comes_about_as_often():
    found = []
    for _ in range(400):
        drawn = []
        sizes_held(drawn, [1000])
        found.append(drawn.count(1000))
    assert all(60 < found.count(number) < 140 for number in range(4))


@pytest.mark.parametrize("of", [[], [0], [(8 << 20) + 512]])
def test_nothing_as_large_as_an_empty_or_a_large_output_is_held(of):
    drawn = []
    sizes_held(drawn, of)
    assert len(drawn) == len(of[:1]) and all(size <= 2 << 20 for size in drawn)


def test_a_device_without_room_holds_what_it_could_and_says_nothing(monkeypatch):
    made = []

    def empty(size_bytes, **where):
        if made:
            raise torch.OutOfMemoryError("no room")
        made.append(size_bytes)
        return torch.empty(size_bytes, **where)

    monkeypatch.setattr(placement, "_randbelow", lambda below: below - 1)
    monkeypatch.setattr(placement, "_empty", empty)
    place = Placement(CPU)
    place.draw([64])
    assert [block.numel() for block in place._held] == [64]
    place.draw([])
    assert place._held == []


@pytest.mark.gpu
def test_a_call_after_a_call_has_its_output_in_one_place_and_in_another_with_other_blocks_held(monkeypatch):
    device = torch.device("cuda", 0)
    size_bytes = 64 * 1024
    place, lay = Placement(device), []
    for chance in (0, 3, 1, 2, 0):
        monkeypatch.setattr(placement, "_randbelow", lambda below, chance=chance: min(chance, below - 1))
        place.draw([size_bytes])
        lay.append([torch.empty(size_bytes, dtype=torch.uint8, device=device).data_ptr() for _ in range(3)])
    assert all(len(set(places)) == 1 for places in lay), "freed and handed out again"
    assert len({places[0] for places in lay[1:]}) == 4
