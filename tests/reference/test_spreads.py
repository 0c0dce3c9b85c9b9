"""How far two evaluations lie apart, and the scale of rows in which hardly anything is left."""

from __future__ import annotations

import math

import pytest
import torch

from harness.reference.accuracy.bounds_without_terms import Spread
from harness.reference.spreads import pooled, row_scale, spread_between, without_small

U = 2.0**-24


def test_a_spread_is_in_u_of_the_largest_in_its_row():
    other = torch.ones(4, 64)
    other[:, 0] = 2.0
    own = other.clone()
    own[1, 3] += 8 * 2 * U
    (found,) = spread_between([own], [other])
    assert found.max_u == pytest.approx(8)
    assert found.rms_u == pytest.approx(8 / math.sqrt(4 * 64))


def test_whole_numbers_and_nothing_have_no_spread_and_what_is_not_finite_in_one_an_infinite_one():
    one = torch.ones(40)
    lost = one.clone()
    lost[3] = math.nan
    pairs = [(torch.ones(3).int(), torch.ones(3).int()), (one[:0], one[:0]), (lost, one), (lost, lost)]
    found = spread_between(*zip(*pairs))
    assert found[:2] == [None, None] and found[2].max_u == math.inf and found[3] == Spread(0, 0)


def test_of_a_large_output_whole_rows_are_looked_at(monkeypatch):
    monkeypatch.setattr("harness.reference.spreads._SAMPLED", 256)
    other = torch.ones(100, 64)
    (found,) = spread_between([other * (1 + 4 * U * 2)], [other])
    assert found == Spread(8.0, 8.0)


def test_several_spreads_are_as_large_as_the_largest():
    assert pooled([Spread(3, 3), None, Spread(4, 4)]) == Spread(4, math.sqrt(12.5))
    assert pooled([None]) is None


def test_the_scale_of_a_small_row_is_an_eighth_of_the_median_one():
    rows = torch.tensor([[0.0], [1e-6], [1.0], [2.0], [16.0]]).double()
    scales = without_small(rows.expand(5, 7))
    assert scales[:, 0].tolist() == [0.125, 0.125, 1.0, 2.0, 16.0]
    assert scales.stride()[1] == 0 and scales.shape == (5, 7)


def test_where_all_is_zero_the_scale_is_too_and_one_element_is_its_own():
    assert without_small(torch.zeros(3, 1).expand(3, 40)).tolist() == torch.zeros(3, 40).tolist()
    assert without_small(torch.tensor(0.25)) == 0.25
    assert without_small(torch.zeros(0, 4)).shape == (0, 4)


def test_the_scale_of_short_rows_is_over_as_many_dimensions_as_hold_thirty_two():
    tensor = torch.arange(64.0).view(2, 8, 4)
    tensor[0, 0, 0] = math.inf
    assert row_scale(tensor).flatten().tolist() == [31.0, 63.0]
    assert row_scale(torch.tensor(-3.0)) == 3.0
