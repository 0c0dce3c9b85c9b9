"""The generator's state many words later, held against what PyTorch's own generator comes to by drawing them."""

from __future__ import annotations

import numpy
import pytest
import torch

from harness.protocol.mersenne_twister import jump_of, state_after


def words_of(generator: torch.Generator) -> numpy.ndarray:
    return generator.get_state()[24:24 + 8 * 624].view(torch.int64).numpy().astype(numpy.uint32)


def words_after_drawing(seed: int, count: int) -> numpy.ndarray:
    generator = torch.Generator().manual_seed(seed)
    torch.empty(count).uniform_(generator=generator)
    return words_of(generator)


@pytest.mark.parametrize("states", [1, 2, 31, 32, 33, 255, 1000])
@pytest.mark.parametrize("seed", [0, 5, 2**63 - 1])
def test_a_jump_from_a_fresh_seed_ends_where_drawing_does(seed, states):
    fresh = words_of(torch.Generator().manual_seed(seed))
    assert (state_after(fresh, jump_of(states)) == words_after_drawing(seed, 624 * states)).all()


def test_jumps_add_up():
    fresh = words_of(torch.Generator().manual_seed(3))
    one_after_the_other = state_after(state_after(fresh, jump_of(100)), jump_of(60))
    assert (one_after_the_other == state_after(fresh, jump_of(160))).all()


def test_a_jump_of_a_thousand_million_words_is_two_of_half_as_many():
    begin, half = words_after_drawing(1, 1), 1 << 20
    assert (state_after(state_after(begin, jump_of(half)), jump_of(half)) == state_after(begin, jump_of(2 * half))).all()
