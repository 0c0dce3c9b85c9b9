"""The bounds themselves: worked examples, and properties that no choice of constants may break."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.reference.accuracy.bounds import (
    UNIT_ROUNDOFF, Bounds, bounds_for, error_unit, fp32_bounds, has_random_signs, is_exact, representation_u,
)

ERRORS = st.floats(0, 1e6)
TERMS = st.floats(1, 1e7)
CLASSES = ("fp32", "tf32", "fp16", "bf16")


def test_a_lucky_eager_result_leaves_the_allowance_for_a_sequential_sum():
    assert fp32_bounds(6.3, 0.5, 8192, exact=False) == Bounds(2 * math.sqrt(8192), 0.5 * math.sqrt(8192) + 2)


def test_an_exact_family_has_no_allowance_for_sums():
    assert fp32_bounds(0, 0, 8192, exact=True) == Bounds(8, 1)


def test_random_signs_leave_no_allowance_for_sums_to_the_largest_error():
    assert fp32_bounds(0.6, 0.1, 4096, exact=False, random_signs=True) == Bounds(10.4, 34)
    assert bounds_for("tf32", 0.6, 0.1, 4096, exact=False, random_signs=True).max_u == pytest.approx(10.4 + 32784)


@pytest.mark.parametrize("terms", [64, 4096])
def test_with_random_signs_honest_sums_pass_and_tf32_for_a_hundredth_of_the_terms_does_not(terms, one_thread):
    torch.manual_seed(3)
    a, b = (torch.rand(shape) * (2 * torch.randint(0, 2, shape) - 1) for shape in ((48, terms), (terms, 48)))
    truth, scale = a.double() @ b.double(), a.abs().double() @ b.abs().double()
    sequential = torch.zeros(48, 48)
    for k in range(terms):
        sequential = sequential + a[:, k : k + 1] * b[k : k + 1]
    few = max(1, terms // 100)
    narrow = [((matrix.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32) for matrix in (a[:, :few], b[:few])]
    in_part = narrow[0] @ narrow[1] + a[:, few:] @ b[few:]
    eager, honest, cheat = (
        float(((found.double() - truth).abs() / (scale * 2**-24)).max()) for found in (a @ b, sequential, in_part)
    )
    bounds = fp32_bounds(eager, 0.5, terms, exact=False, random_signs=has_random_signs("signs"))
    assert honest < bounds.max_u < cheat


def test_tf32_opens_the_bounds_by_two_truncated_inputs():
    assert representation_u("tf32") == representation_u("fp16") == 32768 + 16
    assert representation_u("bf16") == 2**18 + 1024
    assert representation_u("fp32") == 0
    assert bounds_for("tf32", 109, 20, 8192, exact=False) == Bounds(444 + 32784, 81 + 16392, "tf32")


@pytest.mark.parametrize("kept_bits, precision_class", [(11, "tf32"), (8, "bf16")])
@given(st.data())
def test_a_product_of_two_truncated_inputs_is_within_the_allowance(kept_bits, precision_class, data):
    def truncated(x: float) -> float:
        fraction, exponent = math.frexp(x)
        return math.ldexp(math.floor(fraction * 2**kept_bits) / 2**kept_bits, exponent)

    a, b = data.draw(st.floats(1e-3, 1e3)), data.draw(st.floats(1e-3, 1e3))
    error_u = abs(truncated(a) * truncated(b) - a * b) / (a * b * UNIT_ROUNDOFF["float32"])
    assert error_u <= representation_u(precision_class)


@given(ERRORS, ERRORS, TERMS, st.booleans())
def test_eager_itself_is_always_within_its_bounds(max_u, rms_u, terms, exact):
    bounds = fp32_bounds(max_u, rms_u, terms, exact)
    assert max_u <= bounds.max_u and rms_u <= bounds.rms_u


@given(ERRORS, ERRORS, st.floats(1, 1e7), st.booleans())
def test_a_wider_class_never_has_tighter_bounds(max_u, rms_u, terms, exact):
    bounds = [bounds_for(name, max_u, rms_u, terms, exact) for name in CLASSES]
    assert all(a.max_u <= b.max_u and a.rms_u <= b.rms_u for a, b in zip(bounds, bounds[1:], strict=False))


@given(ERRORS, ERRORS, st.floats(1, 1e7))
def test_an_exact_family_is_never_allowed_more(max_u, rms_u, terms):
    exact, summed = (fp32_bounds(max_u, rms_u, terms, flag) for flag in (True, False))
    assert exact.max_u <= summed.max_u and exact.rms_u <= summed.rms_u


@pytest.mark.parametrize("arguments", [(math.nan, 1, 10), (math.inf, 1, 10), (1, math.inf, 10), (-1, 1, 10),
                                       (1, 1, math.nan), (1, 1, -4)])
def test_no_bound_follows_from_an_eager_result_that_is_itself_broken(arguments):
    with pytest.raises(ValueError):
        fp32_bounds(*arguments, exact=False)


def test_an_unknown_class_is_refused_with_the_ones_there_are():
    with pytest.raises(ValueError, match="fp32, tf32, fp16, bf16"):
        bounds_for("fp8", 1, 1, 10, exact=False)


@pytest.mark.parametrize("family, exact", [("identity", True), ("one-hot", True), ("one_hot", True),
                                           ("One-hot B", True), ("as given", False), ("signs", False)])
def test_identity_and_one_hot_inputs_are_the_exact_families(family, exact):
    assert is_exact(family) is exact


def test_half_precision_outputs_are_counted_in_the_unit_of_fp32():
    assert error_unit("float16") == error_unit("bfloat16") == error_unit("float32") == 2**-24
    assert error_unit("float64") == 2**-53
