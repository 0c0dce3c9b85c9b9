"""Plain values among what forward returns: floats nearly, all else exactly."""

from __future__ import annotations

import pytest

from harness.judge.launch_figures import _same_values


@pytest.mark.parametrize(("own", "expected", "same"), [
    ([1.0], [1.0 + 1e-9], True), ([1], [1.0], True), ([1.01], [1.0], False), ([3], [3], True), ([True], [1], False),
    ([10**400], [1.0], False), ([float("nan")], [1.0], False), ([float("nan")], [float("nan")], True), ([1.0, 2.0], [1.0], False), (["a"], ["a"], True),
])
def test_a_float_is_the_same_to_a_millionth_and_a_number_that_is_none_of_pythons_floats_is_not(own, expected, same):
    assert _same_values(own, expected) is same
