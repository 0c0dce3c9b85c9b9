"""For how long a GPU works before a launch under the profiler."""

from __future__ import annotations

from harness.player import profiling


def test_a_launch_is_warmed_up_where_the_clock_may_have_fallen_and_where_it_is_profiled_again(monkeypatch):
    for preparing_s, first_s in ((0.001, 0.0), (0.03, 0.0), (3.0, 0.05)):
        monkeypatch.setattr(profiling, "_profiled_before", False)
        assert [profiling._warm_up_s(preparing_s) for _ in range(3)] == [first_s, 0.05, 0.05]
