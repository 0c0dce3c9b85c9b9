"""What is taken of launches as they were reported and clocked."""

from __future__ import annotations

import pytest

from harness.launch.conversation import Launch
from harness.timing.timings import HalfRound, Timing


def launch(time_us, wall_us, flush_us=None, window_us=None):
    return Launch(time_us, 3.0, wall_us, None, [], flush_us=flush_us, window_us=window_us)


def test_on_a_cpu_the_judges_clock_starts_as_the_window_opens():
    part = HalfRound([launch(500.0, 21_000.0, 20_000.0), launch(700.0, 21_500.0, 20_100.0)], [])
    assert part.wall_us == [21_000.0, 21_500.0]
    assert (part.wall_less_time_us, part.flush_us) == ([500.0, 700.0], [20_000.0, 20_100.0])


def test_elsewhere_it_starts_as_a_launch_may_go():
    part = HalfRound([launch(500.0, 740.0), launch(500.0, None)], [])
    assert (part.wall_less_time_us, part.flush_us) == ([240.0], [])


def test_the_judges_clock_from_the_opening_of_the_window_on_is_kept_beside_that_launch_by_launch():
    part = HalfRound([launch(500.0, 740.0, window_us=580.0), launch(500.0, None)], [[500.0]])
    assert part.window_less_time_us == [80.0, None]
    timing = Timing()
    timing.keep(part, part)
    assert timing.window_less_time_us == [80.0, None] * 2 and len(timing.candidate_us) == 4


def test_of_both_a_tenth_is_cut_off_at_each_end():
    timing = Timing(wall_less_time_us=[9e9, *[40.0] * 18, -9e9], flush_us=[9e9, *[20_000.0] * 18, 0.0])
    assert (timing.wall_overhead_us, timing.flush_overhead_us) == (pytest.approx(40.0), pytest.approx(20_000.0))
    assert (Timing().wall_overhead_us, Timing().flush_overhead_us) == (None, None)
