"""The baseline in the candidate's own process: when it counts, and what becomes of one that fails."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from harness.launch.failures import Failed, failed
from harness.model.device_limits import CUDA
from harness.model.verdict import ReasonCode, Status
from harness.timing.rounds import Rounds
from harness.timing.stability import check_spread
from harness.timing.stats import process_share

pytestmark = pytest.mark.usefixtures("small_regions")


def test_below_a_millisecond_the_speedup_is_over_the_baseline_in_the_candidates_process(beside):
    timing, log = beside(20.0, 20.0, 20.4)
    assert timing.agreeing and timing.speedup.estimate == pytest.approx(1.0)
    assert timing.speedup.hi == pytest.approx(1.02), "the interval reaches to the judge's own baseline"
    assert timing.speedup.lo == pytest.approx(1.0)
    rounds = "".join(entry[0] for entry in log if entry[0] in "ABI")
    assert "AIBIA" + "IABAI" + "AIBIA" in rounds


def test_baselines_that_disagree_are_a_note_and_the_judges_own_counts(beside):
    timing, _ = beside(20.0, 40.0, 20.0)
    assert not timing.agreeing and timing.speedup.estimate == pytest.approx(1.0)
    assert timing.speedup.lo == pytest.approx(1 / 1.05) and timing.speedup.hi == pytest.approx(1.05)
    assert timing.notes == [
        "eager took 40.0 µs in its process and 20.0 µs in the judge's, more than processes differ by: the speedup is over "
        "the judge's, and its interval 1 µs wider at either end for what a process adds to a call"
    ]


@pytest.mark.parametrize(("in_worker_us", "a_us", "b_us"), [(15.49, 15.49, 16.56), (16.70, 16.70, 15.43)])
def test_an_unusual_process_makes_nobody_faster_or_slower_than_itself(beside, in_worker_us, a_us, b_us):
    """The two of 119 in which eager was called so, on an H200."""
    timing, _ = beside(a_us, in_worker_us, b_us)
    assert not timing.agreeing and timing.speedup.estimate == pytest.approx(b_us / a_us)
    assert timing.speedup.lo <= 1.0 <= timing.speedup.hi and timing.word == "UNSURE"
    assert "its interval spans both" in timing.notes[0]


def test_longer_calls_and_workers_that_cannot_have_the_baseline_inside(beside):
    assert "I" not in {entry[0] for entry in beside(5000.0, 5000.0, 5000.0)[1]}
    timing, log = beside(20.0, None, 20.0)
    assert not timing.in_worker_us and "I" not in {entry[0] for entry in log}
    assert "it cannot be loaded there" in timing.notes[0] and timing.speedup.hi == pytest.approx(1.05)


def test_beside_a_long_call_it_counts_where_both_are_as_long_and_a_narrow_interval_is_asked_for(beside):
    timing, log = beside(2720.5, 2720.5, 2720.0, half_width=0.001)
    assert "I" in {entry[0] for entry in log}
    assert timing.agreeing and timing.speedup.estimate == pytest.approx(1.0)
    assert timing.speedup.lo == pytest.approx(2720.0 / 2720.5), "down to what the judge's own baseline says"
    assert "I" not in {entry[0] for entry in beside(500.0, 2720.5, 2720.0, half_width=0.001)[1]}
    assert "I" not in {entry[0] for entry in beside(2720.5, 2720.5, 2720.0, half_width=0.002)[1]}


def test_a_long_baseline_slowed_inside_by_more_than_its_margin_counts_for_nothing(beside):
    timing, _ = beside(2720.0, 2724.0, 2720.0, half_width=0.001)
    assert not timing.agreeing and timing.speedup.estimate == pytest.approx(1.0)
    assert timing.speedup.lo <= 1.0 and timing.word != "FASTER"


def test_a_baseline_that_fails_inside_is_left_at_that(beside):
    timing, log = beside(20.0, "raises", 20.0)
    assert [entry[0] for entry in log].count("I") == 1
    assert not timing.agreeing and timing.speedup.estimate == 1.0 and timing.word == "UNSURE"
    assert timing.notes[0].startswith("eager could not be timed in its process (raised RuntimeError: patched): the speedup")


def test_one_that_fails_later_is_said_to_and_not_that_it_took_another_time(scripted, reference_of, settings):
    log = []
    session, backend = scripted.Session(lambda _: 20.0, log), scripted.Backend(20.0, log, "cuda")
    session.in_worker_us, plain = 20.0, session.time_reference

    def time_reference(sets, **how):
        if [entry[0] for entry in log].count("I") == 4:
            session.in_worker_us = "raises"
        return plain(sets, **how)

    session.time_reference = time_reference
    timing = Rounds(
        session, backend, reference_of(), settings, lambda sets, made, only=None: None, {1}, is_control=True
    ).run()
    assert not timing.agreeing and timing.in_worker_us
    assert len(timing.notes) == 1 and "could not be timed in its process in all rounds" in timing.notes[0]
    assert timing.speedup.lo == pytest.approx(1 / 1.05) and timing.speedup.hi == pytest.approx(1.05)


@pytest.fixture
def late(scripted, reference_of, settings):
    """`late(*which)`: the timing of eager beside itself, whose queues of these numbers in the worker were not gated.
    The candidate's own segments between the eighth of them and the ninth take another time.
    """

    def make(*which):
        log = []
        session = scripted.Session(lambda _: 15.6 if session.in_workers != 8 else 9.0, log)
        backend = scripted.Backend(15.1, log, "cuda")
        session.in_worker_us, session.late_in_worker = 15.6, which
        wanted = replace(settings, half_width=1e-6)
        rounds = Rounds(
            session, backend, reference_of(), wanted, lambda sets, made, only=None: None, {1}, is_control=True
        )
        return rounds.run(), log

    return make


def test_one_late_queue_of_the_baseline_costs_its_round_and_no_more(late):
    whole, _ = late()
    timing, _ = late(9)
    assert 9.0 in whole.candidate_us and set(timing.candidate_us) == {15.6}
    assert timing.agreeing and len(timing.log_ratios) == len(whole.log_ratios) and timing.in_worker_fault is None
    assert timing.notes == ["a round was left out: a queue of it was not full in time, as all before it had been"]
    assert timing.dropped == 0, "which is said of heat"
    assert not timing.deserves_another_process


def test_two_of_them_leave_the_baseline_to_the_judge_and_what_a_process_adds_in_the_interval(late):
    """One control of 208 at 16 µs on an H200 was called 4 % slower than itself, with an interval of 0.7 %."""
    timing, _ = late(9, 12)
    assert not timing.agreeing and timing.speedup.estimate == pytest.approx(15.1 / 15.6)
    assert timing.speedup.lo < 1 < timing.speedup.hi and timing.word == "UNSURE"
    assert "in all rounds (its queue was not full in time): the speedup is over the judge's" in timing.notes[1]
    assert timing.deserves_another_process


def test_what_a_process_may_add_is_no_scatter_of_the_candidates(beside):
    """An interval of 6 % for that reason says nothing of its rounds, which are even."""
    timing, _ = beside(15.0, "raises", 15.0)
    assert timing.speedup.half_width > 0.06 and timing.scattered.half_width == pytest.approx(0, abs=1e-9)
    check_spread(timing, CUDA, 0.001)


def test_why_it_was_given_up_outlasts_a_round_that_was_left_out(scripted, reference_of, settings):
    log = []
    session = scripted.Session(lambda _: 20.0, log, lambda segment: segment != 12)
    backend = scripted.Backend(20.0, log, "cuda")
    session.in_worker_us = "raises"
    timing = Rounds(session, backend, reference_of(), settings, lambda sets, made, only=None: None, {1}).run()
    assert timing.launch_hidden is True and "was left out" in timing.notes[0]
    assert timing.in_worker_fault == "raised RuntimeError: patched" and "patched" in timing.notes[1]


def test_eager_that_raises_in_a_round_with_a_late_queue_is_not_excused(scripted, reference_of, settings):
    log = []
    session = scripted.Session(lambda _: 20.0, log)
    backend, plain = scripted.Backend(20.0, log, "cuda"), session.time_reference
    session.in_worker_us = 20.0
    session._hidden = lambda segment: session.in_workers != 7  # in whose round the candidate is late too

    def time_reference(sets, **how):
        if session.in_workers == 7:
            session.in_worker_us = "raises"
        return plain(sets, **how)

    session.time_reference = time_reference
    timing = Rounds(session, backend, reference_of(), settings, lambda sets, made, only=None: None, {1}).run()
    assert timing.in_worker_fault == "raised RuntimeError: patched" and not any("left out" in note for note in timing.notes)


def test_the_first_round_is_nobodys_exception(late):
    """Where it is late its queues are made shorter, and where those are late too, that is that."""
    timing, log = late(1, 2)
    assert not timing.agreeing and "left out" not in timing.notes[0]
    assert timing.launch_hidden is True
    last = [entry for entry in log if entry[0] in ("A", "B") and entry[1] > 1][-10:]
    assert all(entry[2] for entry in last), "nobody else was late"
    assert timing.launches_per_segment == late()[0].launches_per_segment
    timing, _ = late(1)
    assert timing.agreeing and not timing.notes and timing.launches_per_segment < late()[0].launches_per_segment


def test_a_process_that_dies_with_the_baseline_in_it_is_the_end_of_the_rounds(beside):
    with pytest.raises(Failed, match="died in it"):
        beside(20.0, failed(Status.CRASHED, ReasonCode.EXITED, "died in it"), 20.0)


def test_slowing_the_baseline_inside_down_below_the_guard_does_not_raise_the_low_end(beside):
    honest, cheat = beside(400.0, 400.0, 400.0)[0], beside(400.0, 411.0, 400.0)[0]
    assert cheat.agreeing and cheat.speedup.estimate == pytest.approx(1.0275)
    assert cheat.speedup.lo <= honest.speedup.lo and cheat.word == "UNSURE"


@pytest.mark.parametrize(("b_us", "rounds"), [(102.0, 5), (100.0, 20)])
def test_rounds_end_early_where_the_distance_between_the_baselines_is_most_of_the_interval(
    scripted, reference_of, settings, b_us, rounds
):
    # By the number of the segment: looks come when chance says, and have no part in this.
    log, wobble = [], [100.0, 100.02, 99.985, 100.01, 99.99, 100.03, 99.97]
    session, backend = scripted.Session(lambda segment: wobble[segment % len(wobble)], log), scripted.Backend(b_us, log, "cuda")
    session.in_worker_us = 100.0
    wanted = replace(settings, half_width=1e-6, budget_s=600.0)
    timing = Rounds(session, backend, reference_of(), wanted, lambda sets, made, only=None: None, {1}).run()
    assert len(timing.log_ratios) == rounds and timing.agreeing


@pytest.mark.parametrize(("a_us", "in_worker_us", "b_us"), [(22.0, 15.5, 15.5), (30.0, 1200.0, 1200.0), (160.0, 2720.0, 2720.0)])
def test_other_code_than_eager_is_another_number_in_another_process(beside, a_us, in_worker_us, b_us):
    """No round of these differs from another, so all of the interval is that. The control has none of it."""
    timing, _ = beside(a_us, in_worker_us, b_us, is_control=False)
    share = process_share(a_us, b_us, 0.99)
    assert timing.speedup.estimate == pytest.approx(b_us / a_us)
    assert timing.speedup.lo == pytest.approx(b_us / a_us * math.exp(-share))
    assert timing.speedup.hi == pytest.approx(b_us / a_us * math.exp(share))
    assert timing.scattered.half_width == pytest.approx(0, abs=1e-9)


def test_a_difference_that_a_process_may_make_is_none(beside):
    """3 % at 16 µs: known to hundredths in this process, and to nobody for the next."""
    assert beside(15.0, 15.5, 15.5, is_control=False)[0].word == "UNSURE"
    assert beside(12.0, 15.5, 15.5, is_control=False)[0].word == "FASTER"


def test_where_eager_could_not_be_timed_inside_the_wider_of_both_doubts_counts(beside):
    timing, _ = beside(10.0, None, 2000.0, is_control=False)
    assert timing.speedup.hi / timing.speedup.estimate == pytest.approx(math.exp(process_share(10.0, 2000.0, 0.99)))
    timing, _ = beside(200.0, None, 800.0, is_control=False)
    assert timing.speedup.hi / timing.speedup.estimate == pytest.approx(1.005), "the 1 µs that is not in any baseline's time"


def test_on_a_cpu_nothing_of_it_is_known(rounds_of):
    timing, *_ = rounds_of(1000.0, 2000.0)
    assert not timing.is_of_its_process and timing.speedup == timing.scattered


def test_only_the_control_is_told_to_wait_for_the_device_within_its_calls(scripted, small_regions, reference_of, settings):
    for is_control, asked in ((True, 1), (False, 0)):
        session, backend = scripted.Session(lambda _: 20.0, []), scripted.Backend(20.0, [], "cuda")
        timing = Rounds(
            session, backend, reference_of(), settings, lambda sets, made, only=None: None, {1}, is_control=is_control
        ).run()
        assert session.synchronised == asked and (timing.synchronised_overhead_us is not None) == is_control
