"""A traced launch must look like the timed ones."""

from __future__ import annotations

import pytest

from harness.referee.timing import Timing
from harness.referee.tracing import unlike_timed


def timing(time_us, *, host_us=5.0, hidden=True):
    return Timing(candidate_us=[time_us] * 3, host_us=[host_us] * 3, launch_hidden=hidden)


@pytest.mark.parametrize(
    ("traced_us", "timed_us"),
    [(2600, 2625), (3900, 2625), (1100, 2625), (3, 9), (24, 3), (0.5, 40), (2600, 2000)],
    ids=["alike", "a clock that slept", "gaps between kernels", "a tiny kernel", "a tiny kernel with a cold clock",
         "events cost more than the kernel", "a little slower"],
)
def test_honest_differences_between_a_traced_and_a_timed_launch_pass(traced_us, timed_us):
    assert unlike_timed(traced_us, timing(timed_us)) is None


@pytest.mark.parametrize(("traced_us", "timed_us"), [(8000, 2625), (100, 2625), (70, 30), (float("nan"), 100)])
def test_other_work_under_the_profiler_is_told_with_both_figures(traced_us, timed_us):
    sentence = unlike_timed(traced_us, timing(timed_us))
    assert f"{traced_us:.1f} µs under the profiler" in sentence
    assert f"a timed call took {timed_us:.1f} µs" in sentence


def test_the_hosts_time_in_an_unhidden_launch_is_not_missed_among_the_kernels():
    assert unlike_timed(100, timing(1000, host_us=900, hidden=False)) is None
    assert unlike_timed(100, timing(1000, host_us=900, hidden=True)) is not None
