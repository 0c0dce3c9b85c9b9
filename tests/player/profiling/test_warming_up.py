"""For how long a GPU works before a launch under the profiler."""

from __future__ import annotations

from harness.player import profiling


def test_a_launch_that_is_profiled_again_is_warmed_up_for_the_whole_time(monkeypatch):
    for preparing_s, first_s in ((0.001, 0.02), (0.03, 0.03), (3.0, 0.05)):
        monkeypatch.setattr(profiling, "_profiled_before", False)
        assert [profiling._warm_up_s(preparing_s) for _ in range(3)] == [first_s, 0.05, 0.05]
