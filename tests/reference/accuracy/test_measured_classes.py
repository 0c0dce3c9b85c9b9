"""The table the bounds were chosen by: real precision classes on an H200, each to fall where it must.

Figures are (largest error, rms) in u of fp32; None where the rms was not kept, and then it is taken as zero,
so that nothing fails by a figure nobody measured. "Broken" elements, whose error is their whole value, count
as 2²⁴ u. Changing a constant of the bounds means changing this table, with measurements.
"""

from __future__ import annotations

import pytest

from harness.reference.accuracy.bounds import fp32_bounds, has_random_signs, is_exact
from harness.reference.accuracy.classes import ErrorFigures, classify, within

UNIFORM, SIGNS, SPREAD, ONE_HOT, TRANSPOSED = "uniform", "signs", "spread", "one-hot", "uniform, transposed A"
TERMS = {UNIFORM: 4096, SIGNS: 4096, SPREAD: 4096, ONE_HOT: 4096, TRANSPOSED: 8192}
EAGER = {UNIFORM: (69, 9.1), SIGNS: (6, 0.4), SPREAD: (58, 10), ONE_HOT: (0, 0), TRANSPOSED: (109, 20)}
BROKEN = 2.0**24

# one row per kernel: errors in the order of TERMS, the families that must fail, and the class to be named
ROWS = {
    "eager fp32": ([(69, 9.1), (6, 0.4), (58, 10), (0, 0), (109, 20)], set(), "fp32"),
    "sequential fp32": ([(69, 9.1), (6, 0.4), (58, 10), (0, 0), (109, 20)], set(), "fp32"),
    "TF32": ([(15503, 404), (13854, None), (15244, None), (8180, None), (1267, 931)],
             {UNIFORM, SIGNS, SPREAD, ONE_HOT, TRANSPOSED}, "tf32"),
    "bf16": ([(114501, None), (123322, None), (120362, None), (65275, None), (3347, None)],
             {UNIFORM, SIGNS, SPREAD, ONE_HOT, TRANSPOSED}, "bf16"),
    "bf16x3 promoted": ([(316, None), (342, None), (414, None), (128, None), (15, 2.9)],
                        {UNIFORM, SIGNS, SPREAD, ONE_HOT}, "split"),
    "3xTF32 not promoted": ([(482, None), (18, None), (295, None), (2, None), (993, None)],
                            {UNIFORM, SPREAD, TRANSPOSED}, "split"),
    "bf16x6 not promoted": ([(209, 72), (8, None), (212, 53), (0, None), (547, None)],
                            {UNIFORM, SPREAD, TRANSPOSED}, "split"),
    "fp16x3 not promoted": ([(414, None), (10, None), (BROKEN, BROKEN), (2, None), (851, None)],
                            {UNIFORM, SPREAD, TRANSPOSED}, None),
    "3xTF32 promoted": ([(12, 4.4), (7, None), (16, None), (2, None), (19, 5)], set(), "fp32"),
    "bf16x6 promoted": ([(9, 1.6), (2, None), (13, None), (0, None), (14, 2.7)], set(), "fp32"),
    "fp16x3 promoted, scaled": ([(11, 3.2), (7, None), (BROKEN, BROKEN), (2, None), (16, 4)],
                                {SPREAD}, None),
}


def bounds_on(family: str):
    return fp32_bounds(
        *EAGER[family], TERMS[family], is_exact(family), random_signs=has_random_signs(family)
    )


def results_of(kernel: str) -> list[ErrorFigures]:
    results = []
    for family, (max_u, rms_u) in zip(TERMS, ROWS[kernel][0], strict=True):
        bounds = bounds_on(family)
        sizes = f"K={TERMS[family]}"
        results.append(ErrorFigures(max_u, rms_u or 0.0, *EAGER[family], family, sizes, bounds))
    return results


@pytest.mark.parametrize("kernel", ROWS)
def test_each_kernel_fails_on_the_families_measured_and_on_no_other(kernel):
    assert {result.family for result in results_of(kernel) if not within(result)} == ROWS[kernel][1]


@pytest.mark.parametrize("kernel", ROWS)
def test_each_kernel_is_named_by_its_class(kernel):
    assert classify(results_of(kernel), 4096) == ROWS[kernel][2]


@pytest.mark.parametrize("family, max_u, rms_u", [
    (UNIFORM, 283, 37), (SIGNS, 32, 34), (SPREAD, 238, 41), (ONE_HOT, 8, 1), (TRANSPOSED, 444, 81),
])
def test_the_bounds_are_those_of_the_table(family, max_u, rms_u):
    bounds = bounds_on(family)
    # The table's bounds come of eager's unrounded errors, EAGER holds rounded ones: half a unit is 2 u here.
    assert bounds.max_u == pytest.approx(max_u, abs=2)
    assert bounds.rms_u == pytest.approx(rms_u, abs=0.5)


@pytest.mark.parametrize("terms, eager_u, sequential_u", [
    (8192, 6.3, 90),  # M = N = 256, where cuBLAS splits K
    (8192, 23.8, 96.5),  # M = N = 1024
    (768, 5.1, 26.9),  # tril
    (8192, 55, 98),
    (4096, 6.5, 59),  # OpenBLAS on a CPU
    (8192, 3.3, 2.6),  # normal data
])
def test_the_honest_sequential_sum_passes_beside_an_eager_sum_that_is_luckier(terms, eager_u, sequential_u):
    assert sequential_u <= fp32_bounds(eager_u, 0, terms, exact=False).max_u


@pytest.mark.parametrize("eager_u, candidate_u", [
    (55, 1254), (3.3, 466),  # TF32, uniform and normal data
    (55, 2000), (55, 3300), (3.3, 2400),  # bf16
])
def test_narrow_inputs_never_pass_on_the_given_inputs_alone_and_are_called_tf32(eager_u, candidate_u):
    bounds = fp32_bounds(eager_u, 0, 8192, exact=False)
    result = ErrorFigures(candidate_u, 0, eager_u, 0, "as given", "K=8192", bounds)
    assert not within(result)
    assert classify([result], 8192) == "tf32"


@pytest.mark.parametrize("eager_u", [55, 109])
def test_the_bound_holds_whichever_algorithm_eager_happens_to_choose(eager_u):
    bounds = fp32_bounds(eager_u, 20, 8192, exact=False)
    assert 98 <= bounds.max_u < 547  # sequential fp32, and the best of the splits that are not promoted
