"""What another order of summation may change in outputs: the sums' own errors, carried through what comes after."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from harness.reference.accuracy.bounds_without_terms import LONGEST_CHAIN
from harness.reference.casts import WithoutCasts
from harness.reference.perturbed_sums import spread_of_sums

U = 2.0**-24


def spread(call, *shapes):
    torch.manual_seed(4)
    inputs = [torch.rand(shape, dtype=torch.float64) for shape in shapes]

    def evaluate(mode):
        with mode:
            made = call(*inputs)
        return list(made) if isinstance(made, tuple) else [made]

    return spread_of_sums(evaluate, U)


def test_a_sum_by_itself_is_off_by_half_the_root_of_its_terms():
    (found,) = spread(lambda a, b: a @ b, (64, 1024), (1024, 64))
    assert 0.9 * 16 < found.rms_u <= found.max_u <= 16 * (1 + 1e-9)
    (scalar,) = spread(lambda a: a.sum(), (64, 256))
    assert scalar.rms_u == pytest.approx(64)


def test_no_sum_is_longer_than_one_chain():
    (found,) = spread(lambda a: a.sum(), (4, LONGEST_CHAIN))
    assert found.max_u == pytest.approx(0.5 * LONGEST_CHAIN**0.5)


def test_a_mean_over_sums_leaves_little_of_their_errors_and_a_difference_makes_them_large():
    (alone,) = spread(lambda a, b: a @ b, (64, 4096), (4096, 64))
    (averaged,) = spread(lambda a, b: torch.logsumexp((a @ b) / 64, dim=1), (64, 4096), (4096, 64))
    (apart,) = spread(lambda a, b: a @ b - 1000, (64, 4096), (4096, 64))
    assert averaged.max_u < alone.max_u / 3
    assert apart.max_u > 10 * alone.max_u


def test_what_sums_nothing_is_not_off_and_whole_numbers_have_no_spread():
    gelu, index = spread(lambda a: (F.gelu(a), a.argmax(1)), (8, 64))
    assert (gelu.max_u, gelu.rms_u, index) == (0, 0, None)


def test_a_cast_is_off_by_the_roundoff_of_its_type_though_it_is_left_out():
    torch.manual_seed(4)
    given = torch.rand(64, 64, dtype=torch.float64)

    def evaluate(mode):
        with WithoutCasts(), mode:
            return [given.half().float()]

    (found,) = spread_of_sums(evaluate, U)
    assert 0.2 * 2**13 < found.rms_u < found.max_u <= 2**13 * (1 + 1e-9)


def test_a_model_in_eight_bits_can_be_perturbed():
    given = torch.rand(64, 64)

    def evaluate(mode):
        with mode:
            return [given.to(torch.float8_e4m3fn).float()]

    (found,) = spread_of_sums(evaluate, U)
    assert found.max_u > 2**18


def test_the_random_numbers_of_the_reference_are_left_alone():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    spread_of_sums(lambda mode: [torch.ones(40, 40, dtype=torch.float64).sum(0)], U)
    assert torch.equal(torch.rand(3), expected)
