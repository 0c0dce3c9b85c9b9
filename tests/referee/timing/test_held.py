"""Queues that are held until they are full: when, and what becomes of one that is late."""

from __future__ import annotations

from types import SimpleNamespace

from harness.referee.drawn_looks import Look
from harness.referee.looking import Looking


def test_on_a_cpu_nothing_is_held_and_hidden_is_unknown(rounds_of):
    timing, log, *_ = rounds_of(1000.0)
    assert timing.launch_hidden is None
    assert not any(entry[2] for entry in log if entry[0] in ("A", "B"))


def test_on_a_gpu_rounds_are_held_and_a_look_at_the_size_is_not(rounds_of):
    timing, log, *_ = rounds_of(1000.0, kind="cuda", hidden=True)
    arms = [entry for entry in log if entry[0] in ("A", "B")]
    assert timing.launch_hidden is True
    assert not arms[0][2]
    assert all(entry[2] for entry in arms[-20:-5])


def test_a_candidate_that_synchronises_is_no_longer_held_and_the_record_says_so(rounds_of):
    timing, log, *_ = rounds_of(1000.0, kind="cuda", hidden=False)
    assert timing.launch_hidden is False
    held = [entry for entry in log if entry[0] == "A" and entry[2]]
    assert len(held) == 1


def test_a_machine_that_stands_still_once_costs_a_round_and_not_the_queues_after_it(rounds_of):
    took_us = lambda segment: 900.0 if segment == 7 else 1000.0  # noqa: E731
    whole, *_ = rounds_of(took_us, kind="cuda", hidden=True)
    timing, log, *_ = rounds_of(took_us, kind="cuda", hidden=lambda segment: segment != 8)
    assert 900.0 in whole.candidate_us and set(timing.candidate_us) == {1000.0}
    assert timing.launch_hidden is True and timing.dropped == 0
    assert len(timing.log_ratios) == len(whole.log_ratios)
    assert [note for note in timing.notes if "a round was left out" in note]
    last = [entry for entry in log if entry[0] == "A" and entry[1] > 1][-4:]
    assert all(entry[2] for entry in last)


def test_who_is_late_a_second_time_is_held_no_longer(rounds_of):
    """Else it would choose which of its rounds count."""
    timing, log, *_ = rounds_of(1000.0, kind="cuda", hidden=lambda segment: segment not in (8, 14))
    assert timing.launch_hidden is False
    last = [entry for entry in log if entry[0] == "A" and entry[1] > 1][-2:]
    assert not any(entry[2] for entry in last)


def test_one_that_was_never_held_in_a_round_has_no_exception(rounds_of):
    """The warm-up's segments are the first three or so."""
    timing, *_ = rounds_of(1000.0, kind="cuda", hidden=lambda segment: segment < 4)
    assert timing.launch_hidden is False and not [note for note in timing.notes if "left out" in note]


def test_the_times_of_a_queue_that_ran_dry_are_nobodys_usual_ones(rounds_of, monkeypatch):
    """What is looked at next would be held against them: the segment before it was late, and in no ratio."""
    usual, at = [], Looking.at

    def looking(self, look, drawn, usual_us, **how):
        usual.append(list(usual_us))
        return at(self, look, drawn, usual_us, **how)

    monkeypatch.setattr(Looking, "at", looking)
    looks = {3: Look.FLUSH, 4: Look.FLUSH}  # the second segment of the second round is late: number 3
    monkeypatch.setattr(
        "harness.referee.timing.DrawnLooks", lambda kinds: SimpleNamespace(before=looks.get, last=lambda: Look.FLUSH)
    )
    took_us = lambda segment: 5000.0 if segment == 7 else 1000.0  # noqa: E731
    timing, *_ = rounds_of(took_us, kind="cuda", hidden=lambda segment: segment != 8)
    assert [note for note in timing.notes if "a round was left out" in note]
    assert [set(each) for each in usual] == [{1000.0}, set(), {1000.0}]
