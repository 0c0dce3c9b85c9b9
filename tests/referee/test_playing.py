"""What is noted of a contestant while it is played."""

from __future__ import annotations

from harness.referee.playing import compilation_notes


def test_graphs_that_are_compiled_while_a_baseline_is_timed_are_noted():
    assert compilation_notes("torch.compile", 1, 1) == compilation_notes("eager", 0, 0) == []
    assert compilation_notes("torch.compile", 1, 2) == [
        "torch.compile compiled 1 more graph while it was timed: that is in its times"
    ]
    assert "2 more graphs" in compilation_notes("torch.compile", 3, 5)[0]


def test_a_torch_compile_that_compiled_nothing_is_eager_and_said_to_be():
    assert compilation_notes("torch.compile", 0, 0) == ["torch.compile compiled nothing: what was timed is eager"]
