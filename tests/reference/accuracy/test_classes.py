"""Naming what a result is, and saying it in one sentence."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reference.accuracy.bounds import Bounds, bounds_for, fp32_bounds, is_exact
from harness.reference.accuracy.classes import ErrorFigures, classify, reason, within, worst


def figures(max_u, rms_u=0.0, family="as given", bounds=None, terms=4096, **more):
    bounds = bounds or fp32_bounds(69, 9.1, terms, is_exact(family))
    return ErrorFigures(max_u, rms_u, 69, 9.1, family, "M=4096", bounds, **more)


ONE_HOT_GOOD = ErrorFigures(0, 0, 0, 0, "one-hot", "M=4096", Bounds(8, 1))


def test_an_rms_over_its_bound_fails_though_the_maximum_is_within():
    assert within(figures(209, 9.1))
    assert not within(figures(209, 72))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("field", ["max_u", "rms_u"])
def test_an_error_that_is_no_number_is_a_mistake_in_logic(bad, field):
    result = figures(**{"max_u": 1, "rms_u": 1, field: bad})
    assert not within(result)
    assert classify([ONE_HOT_GOOD, result]) is None


def test_the_worst_result_decides_the_class():
    results = [ONE_HOT_GOOD, figures(300), figures(9000)]
    assert classify(results) == "tf32"
    assert worst(results).max_u == 9000


@pytest.mark.parametrize("max_u, expected", [
    (285, "fp32"), (300, "split"), (4000, "split"), (5000, "tf32"), (32000, "tf32"), (40000, "bf16"),
    (262000, "bf16"), (300000, None), (2.0**24, None),
])
def test_classes_follow_one_another_in_the_order_of_their_largest_error(max_u, expected):
    assert classify([ONE_HOT_GOOD, figures(max_u, bounds=Bounds(285, 37))]) == expected


def test_without_an_exact_family_a_small_error_may_still_be_tf32():
    result = figures(466, bounds=Bounds(181, 47))
    assert classify([result], 8192) == "tf32"
    assert classify([result, ONE_HOT_GOOD], 8192) == "split"


def test_on_very_long_sums_less_than_200_u_may_be_tf32():
    result = figures(170, bounds=Bounds(100, None))
    assert classify([result]) == "split"
    assert classify([result], 10_000) == "tf32"


def test_a_problem_that_opens_tf32_takes_tf32_and_refuses_bf16():
    bounds = bounds_for("tf32", 69, 9.1, 4096, exact=False)
    assert classify([figures(15503, 404, bounds=bounds)]) == "tf32"
    assert classify([figures(114501, bounds=bounds)]) == "bf16"
    assert classify([figures(2.0**24, bounds=bounds)]) is None


@given(st.lists(st.floats(0, 2.0**25), min_size=1, max_size=6), st.floats(1, 1e6))
def test_a_list_is_fp32_exactly_when_every_result_is_within(errors, terms):
    results = [figures(error, terms=terms) for error in errors]
    assert (classify(results, terms) == "fp32") == all(within(result) for result in results)
    assert reason(results, terms)


def test_no_results_are_no_verdict():
    with pytest.raises(ValueError):
        classify([])


def test_an_imprecise_result_says_what_it_has_what_eager_has_and_what_is_allowed():
    results = [figures(1250, bounds=Bounds(444, None)),
               ErrorFigures(8180, 0, 0, 0, "one-hot", "M=1000", Bounds(8, 1))]
    assert reason(results) == "tf32-class: 8180 u where eager has 0 u and 8 u is allowed; one-hot family, M=1000"


def test_a_result_that_fails_by_its_rms_shows_its_rms():
    assert reason([ONE_HOT_GOOD, figures(209, 72, bounds=Bounds(285, 37))]) == (
        "split-class: 72 u rms where eager has 9.1 u and 37 u is allowed; inputs as given, M=4096"
    )


def test_a_mistake_in_logic_points_at_the_element():
    result = figures(5.2e6, worst_index=(3, 5), got=12.5, expected=3.25, bounds=Bounds(284, None))
    assert reason([figures(9000), result]) == (
        "element [3, 5] is 12.5 where 3.25 is expected "
        "(5.2e+06 u where eager has 69 u and 284 u is allowed; inputs as given, M=4096)"
    )


def test_a_mistake_without_its_element_still_has_a_reason():
    text = reason([figures(math.inf)])
    assert text.startswith("the output is off by inf where eager has 69 u")


def test_a_good_result_says_how_good():
    assert reason([figures(12, 4.4)]) == "12 u where eager has 69 u and 284 u is allowed; inputs as given, M=4096"


def test_where_tf32_was_seen_to_cost_more_than_a_product_results_that_are_as_far_off_are_called_by_it():
    """The difference of two nearly equal distances, say; but what is off by a quarter of the scale is a mistake."""
    seen = Bounds(45_000, None, tf32_u=90_000)
    assert classify([figures(91_000, bounds=seen)]) == "tf32"
    assert classify([figures(700_000, bounds=seen)]) == "bf16"
    assert classify([figures(700_000, bounds=Bounds(45_000, None))]) is None
    assert classify([figures(2.0**24, bounds=Bounds(45_000, None, tf32_u=1e7))]) is None
