"""Queues that are gated until they are full: when, and what becomes of one that is late."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.timing.probes.runner import ProbeRunner
from harness.timing.probes.schedule import Probe
from harness.timing.rounds import Rounds
from harness.timing.segment_length import fewer_that_fit


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
    gated = [entry[1] for entry in log if entry[0] == "A" and entry[2]]
    assert gated == [timing.launches_per_segment, 2], "and, to be sure of it, the shortest"


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
    """Else it would choose which of its rounds count. Those that were gated before count no more: what is allowed of
    the others would be allowed of all.
    """
    took_us = lambda segment: 1000.0 if segment < 14 else 900.0  # noqa: E731
    timing, log, *_ = rounds_of(took_us, kind="cuda", hidden=lambda segment: segment not in (8, 14))
    assert timing.launch_hidden is False and timing.waits
    assert set(timing.candidate_us) == {900.0} and len(timing.log_ratios) == len(timing.read_kept) >= 4
    last = [entry for entry in log if entry[0] == "A" and entry[1] > 1][-2:]
    assert not any(entry[2] for entry in last)


def test_one_that_was_never_held_in_a_round_has_no_exception(rounds_of):
    """The warm-up's segments are the first three or so."""
    timing, *_ = rounds_of(1000.0, kind="cuda", hidden=lambda segment: segment < 4)
    assert timing.launch_hidden is False and not [note for note in timing.notes if "left out" in note]


def test_the_times_of_a_queue_that_ran_dry_are_nobodys_usual_ones(rounds_of, monkeypatch):
    """What is looked at next would be held against them: the segment before it was late, and in no ratio."""
    usual, at = [], ProbeRunner.at

    def probe_runner(self, probe, drawn, usual_us, **how):
        usual.append(list(usual_us))
        return at(self, probe, drawn, usual_us, **how)

    monkeypatch.setattr(ProbeRunner, "at", probe_runner)
    looks = {3: Probe.FLUSH, 4: Probe.FLUSH}  # the second segment of the second round is late: number 3
    monkeypatch.setattr(
        "harness.timing.rounds.ProbeSchedule", lambda kinds: SimpleNamespace(before=looks.get, last=lambda: Probe.FLUSH)
    )
    took_us = lambda segment: 5000.0 if segment == 7 else 1000.0  # noqa: E731
    timing, *_ = rounds_of(took_us, kind="cuda", hidden=lambda segment: segment != 8)
    assert [note for note in timing.notes if "a round was left out" in note]
    assert [set(each) for each in usual] == [{1000.0}, set(), {1000.0}]


@pytest.fixture
def many_kernels(scripted, small_regions, reference_of, settings):
    """`many_kernels(whose, room)`: the timing and log of 16 µs, where so many launches of the kernels of "A", "I" or "B" fit
    into a queue.
    """

    def make(whose, room, *, a_us=16.0, b_us=16.0):
        log = []
        session, backend = scripted.Session(lambda _: a_us, log, True), scripted.Backend(b_us, log, "cuda")
        session.in_worker_us = b_us
        if whose == "B":
            backend.room = room
        elif whose == "A":
            session.room = room
        else:
            plain = session.time_reference

            def time_reference(sets, *, gate, **how):
                made = plain(sets, gate=gate, **how)
                return replace(made, hidden=len(sets) <= room) if gate else made

            session.time_reference = time_reference
        rounds = Rounds(session, backend, reference_of(), replace(settings, segment_ms=3.0), lambda *given, **named: None, {1})
        return rounds.run(), log

    return make


@pytest.mark.parametrize("whose", ["A", "I", "B"])
@pytest.mark.parametrize(("room", "kept"), [(17, 17), (16, 5), (5, 5), (4, 2), (2, 2)])
def test_queues_of_many_kernels_are_shortened_until_a_stream_takes_them(many_kernels, whose, room, kept):
    timing, log = many_kernels(whose, room)
    assert timing.launch_hidden is True and timing.agreeing and not timing.notes
    assert timing.launches_per_segment == kept
    assert {entry[1] for entry in log[-60:] if entry[0] in ("A", "I", "B") and entry[1] > 1} == {kept}
    assert set(timing.candidate_us) == {16.0} and len(timing.candidate_us) == 2 * len(timing.log_ratios) * (kept - 1)


@pytest.mark.parametrize(("room", "launches"), [(7, 7), (6, 3), (4, 3)])
def test_two_segments_of_the_baseline_that_are_one_queue_fit_together(many_kernels, room, launches):
    """A candidate of 0.4 ms beside eager of 1.1 ms, which is not timed inside."""
    timing, log = many_kernels("B", room, a_us=400.0, b_us=1100.0)
    assert timing.launch_hidden is True
    assert max(entry[1] for entry in log[-40:] if entry[0] == "B") == launches


def test_where_both_segments_of_the_baseline_fit_in_no_queue_each_has_its_own(many_kernels):
    timing, log = many_kernels("B", 2, a_us=400.0, b_us=1100.0)
    assert timing.launch_hidden is True and timing.launches_per_segment == 2
    assert {entry[1] for entry in log[-40:] if entry[0] == "B"} == {2}


@pytest.mark.parametrize("whose", ["A", "B"])
def test_what_fits_in_no_queue_keeps_its_segments_and_is_not_held(many_kernels, whose):
    timing, log = many_kernels(whose, 1)
    assert timing.launch_hidden is False and timing.launches_per_segment == 17
    assert not any(entry[2] for entry in log[-10:] if entry[0] in ("A", "B"))


def test_two_launches_are_tried_before_five_and_neither_where_there_are_no_more():
    tried = []

    def fits(most):
        def answer(counts):
            tried.append(dict(counts))
            return max(counts.values()) <= most
        return answer

    assert fewer_that_fit({"A": 17, "B": 17}, fits(1)) is None and tried == [{"A": 2, "B": 2}]
    assert fewer_that_fit({"A": 17, "B": 3}, fits(5)) == {"A": 5, "B": 3}
    assert fewer_that_fit({"A": 17, "B": 17}, fits(4)) == {"A": 2, "B": 2}
    assert fewer_that_fit({"A": 2, "B": 2}, fits(9)) is None
    tried.clear()
    assert fewer_that_fit({"A": 4, "B": 2}, fits(3)) == {"A": 2, "B": 2} and tried == [{"A": 2, "B": 2}]
