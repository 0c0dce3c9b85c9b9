"""Bounds where no YAML says how long sums are: what eager, other orders of summation and TF32 leave of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reference.accuracy.bounds import ROW_ELEMENTS, Bounds, representation_u
from harness.reference.accuracy.bounds_without_terms import (
    FAR_RMS_U, FAR_U, LONGEST_CHAIN, Spread, bounds_without_terms, chain_spread_u, hides_narrowing, is_rounding_noise,
    narrowest_bounds, of_one_sum,
)
from harness.reference.accuracy.classes import ErrorFigures, reason

NOTHING = Spread(0.0, 0.0)
MANY = 1000
ERRORS = st.floats(0, 1e7)


@st.composite
def spreads(draw):
    max_u = draw(ERRORS)
    return Spread(max_u, max_u * draw(st.floats(0, 1)))


def test_eager_alone_allows_ten_times_its_error_and_four_times_its_root_mean_square():
    assert bounds_without_terms(Spread(2, 0.5), NOTHING, None, MANY) == Bounds(28, 6)


def test_a_sum_allows_twice_the_root_of_its_terms_up_to_one_chain():
    bounds = [bounds_without_terms(NOTHING, of_one_sum(terms), None, MANY) for terms in (4096, LONGEST_CHAIN, 1 << 30)]
    assert bounds == [Bounds(128, 34), Bounds(FAR_U, FAR_RMS_U), Bounds(FAR_U, FAR_RMS_U)]
    assert chain_spread_u(1e9) == chain_spread_u(LONGEST_CHAIN)


def test_of_few_elements_the_root_mean_square_is_not_judged():
    assert bounds_without_terms(NOTHING, NOTHING, None, ROW_ELEMENTS - 1).rms_u is None
    assert bounds_without_terms(NOTHING, NOTHING, None, ROW_ELEMENTS).rms_u is not None


def test_eager_that_is_worse_than_any_order_of_summation_allows_half_of_what_tf32_costs():
    """A norm over millions on a CPU: eager 3300 u off, inputs in TF32 7500."""
    eager, sums, tf32 = Spread(3300, 1900), Spread(64, 38), Spread(7500, 1850)
    assert bounds_without_terms(eager, sums, None, MANY).max_u == 33008
    bounds = bounds_without_terms(eager, sums, tf32, MANY)
    assert eager.max_u < bounds.max_u < tf32.max_u
    assert eager.rms_u < bounds.rms_u


def test_where_the_result_is_ill_conditioned_eager_is_followed_as_ever():
    """TF32 costs as many times more there, so that its half leaves ten times eager's error."""
    assert bounds_without_terms(Spread(1000, 50), NOTHING, Spread(8e6, 4e5), MANY) == Bounds(10008, 204)


def test_on_inputs_that_show_narrowing_half_of_it_is_allowed_where_a_long_sum_would_allow_all():
    eager, sums, tf32 = Spread(0.5, 0.5), Spread(64, 64), Spread(223, 223)
    assert bounds_without_terms(eager, sums, tf32, 1).max_u == 256
    assert bounds_without_terms(eager, sums, tf32, 1, shows_narrowing=True).max_u == 128
    assert bounds_without_terms(eager, sums, Spread(5000, 5000), 1, shows_narrowing=True).max_u == 2500
    assert bounds_without_terms(eager, sums, Spread(3, 3), 1, shows_narrowing=True).max_u == 128  # shows nothing


@given(spreads(), spreads(), st.one_of(st.none(), spreads()), st.sampled_from([1, MANY]), st.booleans())
def test_eager_and_the_narrowest_bounds_are_always_within(eager, sums, narrowing, elements, shows):
    bounds = bounds_without_terms(eager, sums, narrowing, elements, shows_narrowing=shows)
    narrowest = narrowest_bounds(eager, elements)
    assert narrowest.max_u <= bounds.max_u * (1 + 1e-12)
    assert bounds.rms_u is None or narrowest.rms_u <= bounds.rms_u * (1 + 1e-12)
    assert eager.max_u <= bounds.max_u
    assert bounds.rms_u is None or eager.rms_u <= bounds.rms_u


def test_a_class_that_is_opened_has_its_allowance_and_no_ceiling_by_tf32():
    tf32 = Spread(7500, 1850)
    opened = bounds_without_terms(Spread(3300, 1900), NOTHING, tf32, MANY, "tf32", shows_narrowing=True)
    assert opened == Bounds(33008 + representation_u("tf32"), 7604 + representation_u("tf32") / 2, "tf32")


@pytest.mark.parametrize(("narrowing", "terms", "elements", "hidden"), [
    (Spread(8000, 2000), 1, MANY, False), (Spread(1400, 340), 256, MANY, False), (Spread(40, 12), 8192, MANY, True),
    (Spread(8000, 8000), 1 << 20, 1, True), (Spread(230, 80), 432, MANY, False),
    (Spread(0, 0), 1, MANY, False), (Spread(0, 0), 1, 1, True),
])
def test_narrowing_is_hidden_where_it_is_near_what_sums_may_lose_and_in_few_elements(narrowing, terms, elements, hidden):
    assert hides_narrowing(narrowing, terms, elements) is hidden


def test_an_output_is_noise_where_eager_is_further_off_than_half_of_tf32s_roundoff():
    assert is_rounding_noise(Spread(1e16, 5e15)) and is_rounding_noise(Spread(1e5, 4150))
    assert not is_rounding_noise(Spread(6e4, 60))  # a row that is nearly all zero among others
    bf16_u = 2.0**16
    assert not is_rounding_noise(Spread(2e5, 3e4), bf16_u)
    assert is_rounding_noise(Spread(1e16, 5e15), bf16_u)


def test_without_a_product_there_is_no_talk_of_split_ones():
    off = ErrorFigures(13.4, 13.4, 0.3, 0.3, "as given", "own sizes", Bounds(11.3, None), has_products=False)
    assert reason([off]).startswith("less exact than fp32: 13 u where eager has 0.3 u")
    assert math.isclose(off.bounds.max_u, 11.3)
