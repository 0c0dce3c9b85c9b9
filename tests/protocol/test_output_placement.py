"""Where outputs and temporaries lie, as chosen for each queue."""

from __future__ import annotations

import pytest
import torch

from harness.protocol import output_placement
from harness.protocol.output_placement import Placement, any_choice

CPU = torch.device("cpu")
PADDINGS = (2 << 20) // 512


def sizes_held(of, choice):
    place = Placement(CPU)
    place.hold(of, choice)
    return [block.numel() for block in place._held]


@pytest.mark.parametrize(("blocks", "padding", "held"), [
    ((0, 0), 0, [512]), ((3, 3), 3, [1000, 1000, 1000, 64, 64, 64, 2048]), ((1, 2), PADDINGS - 1, [1000, 64, 64, 2 << 20]),
])
def test_up_to_three_blocks_of_each_output_are_held_and_a_padding(blocks, padding, held):
    assert sizes_held([1000, 64], padding + PADDINGS * (blocks[0] + 4 * blocks[1])) == held


def test_each_number_of_blocks_comes_about_as_often_and_one_choice_is_always_the_same():
    choices = [any_choice() for _ in range(400)]
    found = [sizes_held([1000], choice).count(1000) for choice in choices]
    assert all(60 < found.count(number) < 140 for number in range(4))
    assert found == [sizes_held([1000], choice).count(1000) for choice in choices]
    assert len({sizes_held([1000], choice)[-1] for choice in choices}) > 300


LARGE = (8 << 20) + 512


@pytest.mark.parametrize(("of", "count"), [([], 0), ([0], 1), ([LARGE], 0), ([LARGE, LARGE], 0), ([LARGE, 0], 1)])
def test_nothing_as_large_as_an_empty_or_a_large_output_is_held_and_beside_large_ones_alone_no_padding(of, count):
    held = sizes_held(of, any_choice())
    assert len(held) == count and all(size <= 2 << 20 for size in held)


def test_of_more_outputs_than_a_choice_has_digits_for_the_last_have_no_blocks():
    held = sizes_held([64] * 40, (1 << 62) - 1)
    assert 3 * 20 < held.count(64) < 3 * 40


def test_a_device_without_room_holds_what_it_could_and_says_nothing(monkeypatch):
    made = []

    def empty(size_bytes, **where):
        if made:
            raise torch.OutOfMemoryError("no room")
        made.append(size_bytes)
        return torch.empty(size_bytes, **where)

    monkeypatch.setattr(output_placement, "_empty", empty)
    place = Placement(CPU)
    place.hold([64], 3 * PADDINGS)
    assert [block.numel() for block in place._held] == [64]
    place.hold([], 3 * PADDINGS)
    assert place._held == []


@pytest.mark.gpu
def test_a_call_after_a_call_has_its_output_in_one_place_and_in_another_with_other_blocks_held():
    device = torch.device("cuda", 0)
    size_bytes = 64 * 1024
    place, lay = Placement(device), []
    for blocks in (0, 3, 1, 2, 0, 3):
        place.hold([size_bytes], blocks * PADDINGS)
        lay.append([torch.empty(size_bytes, dtype=torch.uint8, device=device).data_ptr() for _ in range(3)])
    assert all(len(set(places)) == 1 for places in lay), "freed and handed out again"
    assert len({places[0] for places in lay[1:5]}) == 4
    assert lay[4:] == [lay[0], lay[1]], "one choice, one place"
