"""How an output differs from the truth: units, what is not finite, a scale of zero, exact types, few passes and many."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.reference import differences
from harness.reference.differences import difference

U = 2.0**-24
EXPECTED = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
ONES = torch.ones(3, dtype=torch.float64)


def single(got, expected, scale, dtype=torch.float32):
    wide = torch.tensor([expected], dtype=torch.float64)
    return difference(torch.tensor([got], dtype=dtype), wide, torch.tensor([scale], dtype=torch.float64))


def test_equal_outputs_have_no_error():
    found = difference(EXPECTED.float(), EXPECTED, ONES)
    assert (found.max_u, found.rms_u, found.not_finite) == (0, 0, 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_expected_in_the_outputs_own_type_is_read_as_what_it_is(dtype):
    got, expected = torch.rand(4, 300).to(dtype), torch.rand(4, 300).to(dtype)
    scale = expected.amax(dim=1, keepdim=True).expand_as(expected)
    assert difference(got, expected, scale) == difference(got, expected.double(), scale.double())


def test_an_error_is_counted_in_units_of_roundoff_of_the_error_scale():
    assert single(1 + 8 * U, 1.0, 1.0).max_u == pytest.approx(8)
    assert single(1 + 8 * U, 1.0, 4.0).max_u == pytest.approx(2)


@pytest.mark.parametrize(
    ("dtype", "unit"), [(torch.float16, U), (torch.bfloat16, U), (torch.float32, U), (torch.float64, 2.0**-53)]
)
def test_the_unit_is_that_of_fp32_also_for_narrower_outputs(dtype, unit):
    assert single(1.5, 1.0, 1.0, dtype).max_u == pytest.approx(0.5 / unit)


def test_the_worst_element_is_named_with_what_was_got_and_expected():
    got = EXPECTED.float().view(3, 1).repeat(1, 5)
    got[2, 3] = 5
    found = difference(got, EXPECTED.view(3, 1).repeat(1, 5), torch.ones(3, 5, dtype=torch.float64))
    assert found.worst_index == (2, 3)
    assert (found.got, found.expected) == (5.0, 4.0)


def test_the_root_mean_square_is_over_all_elements():
    got = EXPECTED.float() + torch.tensor([0.0, 0.0, 6 * 2.0**-22])
    assert difference(got, EXPECTED, ONES).rms_u == pytest.approx(24 / math.sqrt(3))


@pytest.mark.parametrize("lost", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_where_the_truth_is_has_an_infinite_error(lost):
    found = single(lost, 1.0, 1.0)
    assert found.max_u == found.rms_u == math.inf
    assert found.not_finite == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_in_the_truth_must_be_the_same_in_the_output(value):
    assert single(value, value, 1.0).max_u == 0
    assert single(1.0, value, 1.0).max_u == math.inf
    assert single(-value if value == value else math.inf, value, 1.0).max_u == math.inf


def test_infinity_equal_to_an_infinite_truth_is_no_lost_value():
    assert single(math.inf, math.inf, math.inf).not_finite == 0


def test_where_the_error_scale_is_zero_the_element_must_be_equal():
    assert single(0.0, 0.0, 0.0).max_u == 0
    assert single(-0.0, 0.0, 0.0).max_u == 0
    assert single(1e-45, 0.0, 0.0).max_u == math.inf


def test_one_nan_among_many_is_found_and_named():
    got = EXPECTED.float()
    got[1] = math.nan
    found = difference(got, EXPECTED, ONES)
    assert found.worst_index == (1,)
    assert math.isnan(found.got)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_integers_and_booleans_must_be_equal(dtype):
    expected = torch.tensor([0, 1, 1, 0]).to(dtype)
    assert difference(expected.clone(), expected, None).max_u == 0
    wrong = expected.clone()
    wrong[2] = 0
    found = difference(wrong, expected, None)
    assert found.max_u == math.inf
    assert found.worst_index == (2,)
    assert (found.got, found.expected) == (0.0, 1.0)


def test_an_integer_beyond_the_reach_of_float64_is_still_compared_exactly():
    expected = torch.tensor([2**53, 2**53 + 1])
    assert difference(torch.tensor([2**53, 2**53]), expected, None).max_u == math.inf


def test_an_empty_output_is_right():
    assert difference(torch.zeros(0, 4), torch.zeros(0, 4, dtype=torch.float64), None).max_u == 0


def test_a_single_number_has_an_empty_index():
    found = difference(torch.tensor(2.0), torch.tensor(1.0, dtype=torch.float64), torch.tensor(1.0).double())
    assert found.worst_index == ()


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.floats(-(2.0**90), 2.0**90, width=32), min_size=1, max_size=20), st.integers(0, 19),
    st.floats(1e-3, 1e3),
)
def test_no_error_hides_behind_the_others(values, position, factor):
    expected = torch.tensor(values, dtype=torch.float64)
    got = expected.float()
    position %= len(values)
    got[position] = got[position] + 1 + abs(got[position]) * factor
    scale = expected.abs().clamp_min(1e-30)
    own = abs(float(got[position].double()) - values[position]) / (float(scale[position]) * U)
    assert difference(got, expected, scale).max_u >= own * (1 - 1e-12)


UNUSUAL = {
    "NaN": lambda got, expected, scale: got[0].fill_(math.nan),
    "infinity": lambda got, expected, scale: got[0].fill_(math.inf),
    "infinity in both": lambda got, expected, scale: [each[0].fill_(math.inf) for each in (got, expected, scale)],
    "NaN in both": lambda got, expected, scale: [each[0].fill_(math.nan) for each in (got, expected)],
    "a value where the scale is zero": lambda got, expected, scale: [each[0].fill_(0) for each in (expected, scale)],
    "nothing where the scale is zero": lambda got, expected, scale: [each[0].fill_(0) for each in (got, expected, scale)],
    "far off": lambda got, expected, scale: got[0].fill_(1e30),
    "subnormal": lambda got, expected, scale: [each.mul_(1e-40) for each in (got, expected, scale)],
    "nothing": lambda got, expected, scale: None,
}


@pytest.mark.parametrize("change", UNUSUAL.values(), ids=UNUSUAL)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_few_passes_over_an_ordinary_output_find_what_the_many_do(dtype, change, monkeypatch):
    expected = torch.randn(40, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    got, scale = expected.to(dtype), expected.abs()
    change(got, expected, scale)
    found = difference(got, expected, scale)
    monkeypatch.setattr(differences, "_in_few_passes", lambda *tensors: None)
    thorough = difference(got, expected, scale)
    assert found.rms_u == pytest.approx(thorough.rms_u, rel=1e-12)
    # As text, where NaN equals NaN.
    assert str(replace(found, rms_u=0.0)) == str(replace(thorough, rms_u=0.0))
