"""Three clocks on one call: when they disagree, and their way through JSON."""

from __future__ import annotations

import json

import pytest

from harness.model.device_limits import limits_of
from harness.timing.three_clocks import ThreeClocks


@pytest.mark.parametrize(
    ("clocks", "kind", "said"),
    [
        (ThreeClocks(1000.0, 970.0, 1020.0), "cuda", None),
        (ThreeClocks(16.0, 9.0, 40.0), "cuda", None),  # a tiny call is within what the clocks themselves cost
        (ThreeClocks(16.0, 44.0, 60.0), "cuda", "16.0 µs by events, and the profiler says 44.0 µs"),
        (ThreeClocks(1000.0), "cuda", None),
        (ThreeClocks(1000.0, 1200.0, 1010.0), "cuda", "1000.0 µs by events, and the profiler says 1200.0 µs"),
        (ThreeClocks(1000.0, None, 850.0), "cuda", "and the judge's clock says 850.0 µs"),
        (ThreeClocks(100.0, 200.0, 300.0), "cuda", "the profiler says 200.0 µs and the judge's clock says 300.0 µs"),
        (ThreeClocks(2000.0, 6000.0, 900.0), "cpu", None),
        (ThreeClocks(20000.0, 31000.0, 20000.0), "cpu", "the profiler says 31000.0 µs"),
    ],
)
def test_clocks_disagree_beyond_a_share_and_a_least_time(clocks, kind, said):
    found = clocks.disagreement(limits_of(kind))
    assert found is None if said is None else said in found


def test_they_come_back_from_the_samples_of_a_record_and_broken_ones_are_not_there():
    clocks = ThreeClocks(161.5, 160.1, None)
    assert ThreeClocks.in_samples({"clocks": json.loads(json.dumps(clocks.to_json()))}) == clocks
    for body in (None, {}, {"events_us": "x", "profiler_us": 1, "wall_us": 1}, [1, 2, 3], {"events_us": 1.0}):
        assert ThreeClocks.in_samples({"clocks": body}) is None
    assert ThreeClocks.in_samples({}) is None
