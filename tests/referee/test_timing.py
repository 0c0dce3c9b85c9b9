"""Rounds on a scripted device: known times in, known ratios out, and every way of stopping."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from harness.device.bench import LocalTimes
from harness.device.identity import Telemetry
from harness.referee.early import EarlyLook
from harness.referee.failures import Failed, failed
from harness.referee.judgement import published
from harness.referee.turns import Launch, Launches
from harness.referee.timed import Timing
from harness.referee.timing import Rounds
from harness.statistics import Interval, estimate_speedup
from harness.verdict import ReasonCode, Status


class ScriptedSession:
    """A player whose launches take what `time_us(number of the segment)` says; the first of a segment is slow."""

    def __init__(self, time_us, log, hidden=None, steps_us=40.0):
        self._time_us, self._log, self._hidden, self._steps_us = time_us, log, hidden, steps_us
        self.opened, self.segments = [], 0
        self.end_to_end_us = 77.0
        self.early_us, self.early_s = 1111.0, 0.0

    def open(self, reference, count):
        self.opened.append(count)

    inside_us = None  # what the baseline takes in the player; None where it cannot be constructed there

    def load_reference(self, reference):
        return self.inside_us is not None

    def time_reference(self, sets, *, hold):
        self._log.append(("I", len(sets), hold))
        if isinstance(self.inside_us, Exception):
            raise self.inside_us
        if self.inside_us == "raises":
            return None
        times = [1000 * self.inside_us] + [self.inside_us] * (len(sets) - 1)
        return Launches([Launch(each, 3.0, each, None, []) for each in times], 1.0, None, [True] * len(sets))

    def launch(self, sets, *, hold, timeout_s=None, early_s=None, inspect=False):
        if early_s is not None:  # a look at early inputs, of which every other segment is as usual
            self._log.append(("inspected" if inspect else "early", len(sets), hold))
            self.early_s = max(early_s, self.early_s)
            time_us = self.early_us if early_s else self._time_us(self.segments)
            launches = [Launch(time_us, 3.0, 1.0, None, [])] * len(sets)
            return Launches(launches, 1.0, None, [True] * len(sets))
        time_us = self._time_us(self.segments)
        self.segments += 1
        self._log.append(("A", len(sets), hold))
        times = [1000 * time_us] + [time_us] * (len(sets) - 1) if len(sets) > 1 else [time_us]
        launches = [Launch(each, 3.0, each + self._steps_us, None, []) for each in times]
        return Launches(launches, self.end_to_end_us, self._hidden if hold else None, [True] * len(sets))


class ScriptedBench:
    """The referee's own arm on the same script, and telemetry from a list."""

    def __init__(self, time_us, log, kind="cpu", throttle=lambda index: None):
        self.kind, self._time_us, self._log, self._throttle = kind, time_us, log, throttle
        self.identity = SimpleNamespace(memory_bytes=8 << 30)
        self.readings = 0

    def synchronize(self):
        self._log.append(("synchronize",))

    def local_launches(self, model, sets, *, hold):
        self._log.append(("B", len(sets), hold))
        return LocalTimes([1000 * self._time_us] + [self._time_us] * (len(sets) - 1), 50.0)

    def telemetry(self, own_pids):
        self.readings += 1
        return Telemetry(throttle=self._throttle(self.readings - 1))


@pytest.fixture
def rounds_of(reference_of, settings):
    """`rounds_of(a_us, b_us, …)`: (Timing, log, session, bench) after a whole run."""

    def make(a_us, b_us=2000.0, *, kind="cpu", hidden=None, throttle=lambda index: None, verify=None, **changes):
        log = []
        candidate_us = a_us if callable(a_us) else lambda segment: a_us
        session = ScriptedSession(candidate_us, log, hidden)
        bench = ScriptedBench(b_us, log, kind, throttle)
        judge = verify or (lambda sets, made: log.append(("verify", len(sets), len(made.launches))))
        rounds = Rounds(session, bench, reference_of(), replace(settings, **changes), judge, {1})
        return rounds.run(), log, session, bench

    return make


def test_twice_as_fast_is_a_speedup_of_two(rounds_of):
    timing, *_ = rounds_of(1000.0, 2000.0)
    assert timing.speedup.estimate == pytest.approx(2)
    assert timing.time_us == 1000
    assert timing.baseline_time_us == 2000
    assert timing.word == "FASTER"


@pytest.mark.parametrize(("a_us", "word"), [(2000.0, "SAME"), (2200.0, "SLOWER"), (1500.0, "FASTER")])
def test_the_word_follows_the_ratio(rounds_of, a_us, word):
    assert rounds_of(a_us, 2000.0)[0].word == word


def test_a_ratio_too_noisy_to_call_is_unsure(rounds_of):
    noise = [1000.0, 4000.0, 2000.0, 900.0, 3000.0]
    timing, *_ = rounds_of(lambda segment: noise[segment % 5])
    assert timing.word == "UNSURE"
    assert timing.speedup.lo < 1 < timing.speedup.hi


def test_the_slow_lead_in_of_each_segment_is_thrown_away(rounds_of):
    timing, *_ = rounds_of(1000.0)
    assert set(timing.candidate_us) == {1000.0}
    assert set(timing.baseline_us) == {2000.0}


def test_each_reading_has_its_time_and_whether_its_round_was_kept(rounds_of):
    timing, *_ = rounds_of(1000.0, throttle=lambda index: "hw_thermal" if index % 8 < 2 else "")
    assert len(timing.read_at_s) == len(timing.read_kept) == len(timing.telemetry)
    assert timing.read_at_s == sorted(timing.read_at_s) and timing.read_at_s[0] >= 0
    assert timing.read_kept.count(False) == 2 * timing.dropped > 0


def test_a_steady_ratio_stops_at_the_first_look(rounds_of):
    timing, *_ = rounds_of(1000.0)
    assert len(timing.log_ratios) == 5


def test_a_noisy_one_goes_on_to_the_last_look_and_no_further(rounds_of):
    noise = itertools.cycle([1000.0, 1500.0, 1200.0])
    timing, *_ = rounds_of(lambda segment: next(noise))
    assert len(timing.log_ratios) == 20


def test_a_wider_half_width_stops_earlier(rounds_of):
    noise = itertools.cycle([1000.0, 1010.0, 1005.0])
    loose, *_ = rounds_of(lambda segment: next(noise), half_width=0.5)
    assert len(loose.log_ratios) == 5


def test_a_spent_budget_ends_the_rounds_after_the_fewest_that_mean_anything(rounds_of):
    noise = itertools.cycle([1000.0, 1500.0, 1200.0])
    timing, *_ = rounds_of(lambda segment: next(noise), budget_s=0.0)
    assert len(timing.log_ratios) == 4
    assert timing.speedup is not None


def test_the_interval_is_that_of_the_look_at_which_it_stopped(rounds_of):
    noise = itertools.cycle([1000.0, 1500.0, 1200.0])
    timing, *_ = rounds_of(lambda segment: next(noise))
    assert timing.speedup == estimate_speedup(timing.log_ratios, 1 - 0.01 / 3)
    assert timing.confidence == 0.99


def test_rounds_go_abba_and_baab_in_turn(rounds_of):
    _, log, *_ = rounds_of(1000.0)
    arms = "".join(entry[0] for entry in log if entry[0] in ("A", "B"))
    end_to_end = 5
    kept = arms[: len(arms) - end_to_end][-5 * 4 :]
    assert kept == "ABBA" + "BAAB" + "ABBA" + "BAAB" + "ABBA"


def test_both_arms_have_run_before_the_outputs_of_a_pair_are_judged(rounds_of):
    _, log, *_ = rounds_of(1000.0)
    steps = [entry[0] for entry in log if entry[0] != "synchronize"][:-10]
    for _ in range(2):
        look = steps.index("inspected")  # the segments of a look have one arm, and are judged by themselves
        assert steps[look : look + 6] == ["inspected", "verify", *["early", "verify"] * 2]
        del steps[look : look + 6]
    assert all(set(steps[at - 2 : at]) == {"A", "B"} for at, step in enumerate(steps) if step == "verify")


def test_every_launch_is_judged_timed_or_not(rounds_of):
    _, log, *_ = rounds_of(1000.0)
    made = sum(entry[1] for entry in log if entry[0] in ("A", "early", "inspected"))
    judged = sum(entry[1] for entry in log if entry[0] == "verify")
    assert made == judged


def test_no_inputs_are_used_twice_and_what_eager_is_timed_on_never_goes_to_the_candidate(reference_of, settings):
    log, seen = [], []
    session, bench = ScriptedSession(lambda _: 1000.0, log), ScriptedBench(1000.0, log)
    plain_launch, plain_local = session.launch, bench.local_launches

    def launch(sets, **how):
        seen.extend(sets)
        return plain_launch(sets, **how)

    def local_launches(model, sets, **how):
        seen.extend(sets)
        return plain_local(model, sets, **how)

    session.launch, bench.local_launches = launch, local_launches
    Rounds(session, bench, reference_of(), settings, lambda sets, made: None, set()).run()
    assert len({id(each) for each in seen}) == len(seen)
    contents = {bytes(each.region.numpy()) for each in seen}
    assert len(contents) == len(seen)


def test_segments_are_about_as_long_as_the_settings_say_in_whole_rotations(rounds_of):
    _, log, session, _ = rounds_of(500.0, 1000.0, segment_ms=3.0)
    assert {entry[1] for entry in log if entry[0] == "A" and entry[1] > 2} == {1 + 8}
    assert {entry[1] for entry in log if entry[0] == "B" and entry[1] > 2} == {1 + 3}
    assert session.opened == [2, 9]


@pytest.mark.parametrize(("time_us", "launches"), [(1.0, 17), (1e6, 2)])
def test_a_segment_has_two_launches_at_least_and_seventeen_at_most(rounds_of, time_us, launches):
    timing, *_ = rounds_of(time_us, time_us)
    assert timing.input_sets == launches


def test_a_clock_that_says_next_to_nothing_makes_no_long_segments_by_the_referees_own(reference_of, settings):
    log, wanted = [], replace(settings, segment_ms=1.0)
    session, bench = ScriptedSession(lambda _: 0.001, log, steps_us=5000.0), ScriptedBench(2000.0, log)
    timing = Rounds(session, bench, reference_of(), wanted, lambda sets, made: None, set()).run()
    assert timing.launches_per_segment == 1 + 4  # twenty times a millisecond, in launches of five


def test_a_small_memory_makes_segments_shorter(reference_of, settings):
    log = []
    session, bench = ScriptedSession(lambda _: 10.0, log), ScriptedBench(10.0, log)
    bench.identity = SimpleNamespace(memory_bytes=160 << 20)
    timing = Rounds(session, bench, reference_of(), settings, lambda sets, made: None, set()).run()
    assert timing.input_sets == 3  # a quarter of 160 MiB in launches of 4 + 2 regions of 2 MiB


@pytest.mark.parametrize("reason", ["hw_thermal", "power_cap+sw_thermal", "hw_slowdown"])
def test_rounds_in_the_heat_are_dropped_for_both_arms(rounds_of, reason):
    timing, *_ = rounds_of(1000.0, throttle=lambda index: reason if index % 8 < 2 else "")
    assert timing.dropped > 0
    assert 2 * (len(timing.log_ratios) + timing.dropped) == len(timing.telemetry)
    assert timing.speedup.estimate == pytest.approx(2)


def test_the_times_of_dropped_rounds_are_not_reported_either(rounds_of):
    def hot_then_cool(segment):
        return 9000.0 if segment < 6 else 1000.0

    timing, *_ = rounds_of(hot_then_cool, throttle=lambda index: "hw_thermal" if index < 8 else "", segment_ms=1)
    assert timing.dropped > 0
    assert set(timing.candidate_us) == {1000.0}


def test_a_power_cap_drops_nothing(rounds_of):
    assert rounds_of(1000.0, throttle=lambda index: "power_cap")[0].dropped == 0


def test_nothing_but_heat_ends_at_the_last_look_without_an_estimate(rounds_of):
    timing, *_ = rounds_of(1000.0, throttle=lambda index: "hw_thermal")
    assert timing.log_ratios == []
    assert timing.dropped == 20
    assert timing.speedup is None
    assert timing.word is None


def test_a_wrong_output_in_a_timed_launch_ends_the_rounds(rounds_of):
    calls = []

    def verify(sets, made):
        calls.append(1)
        if len(calls) == 9:
            raise failed(Status.INCORRECT, ReasonCode.WRONG_VALUES, "wrong in the end")

    with pytest.raises(Failed, match="wrong in the end"):
        rounds_of(1000.0, verify=verify)


def test_on_a_cpu_nothing_is_held_and_hidden_is_unknown(rounds_of):
    timing, log, *_ = rounds_of(1000.0)
    assert timing.launch_hidden is None
    assert not any(entry[2] for entry in log if entry[0] in ("A", "B"))


def test_on_a_gpu_rounds_are_held_and_a_look_at_the_size_is_not(rounds_of):
    timing, log, *_ = rounds_of(1000.0, kind="cuda", hidden=True)
    arms = [entry for entry in log if entry[0] in ("A", "B")]
    assert timing.launch_hidden is True
    assert not arms[0][2]
    assert all(entry[2] for entry in arms[-25:-5])


def test_a_candidate_that_synchronises_is_no_longer_held_and_the_record_says_so(rounds_of):
    timing, log, *_ = rounds_of(1000.0, kind="cuda", hidden=False)
    assert timing.launch_hidden is False
    held = [entry for entry in log if entry[0] == "A" and entry[2]]
    assert len(held) == 1


def test_end_to_end_time_is_the_median_of_single_calls_apart_from_the_rounds(rounds_of):
    timing, log, *_ = rounds_of(1000.0)
    assert timing.end_to_end_us == 77
    assert [entry[1] for entry in log if entry[0] == "A"][-5:] == [1] * 5


def test_what_the_wall_clock_saw_beyond_the_reported_time_is_kept(rounds_of):
    timing, *_ = rounds_of(1000.0)
    assert timing.wall_overhead_us == pytest.approx(40)
    assert Timing().wall_overhead_us is None


def timing_of(ratios):
    timing = Timing(log_ratios=list(ratios))
    timing.speedup = estimate_speedup(timing.log_ratios, 0.99)
    return timing


def test_players_that_differ_more_than_their_own_rounds_widen_the_interval():
    spread = [timing_of([centre + wobble for wobble in (-1e-4, 0, 1e-4, 0, 0)]) for centre in (0.0, 0.02, 0.04)]
    found = published(spread, 0.99)
    single = estimate_speedup(spread[0].log_ratios, 0.99)
    assert math.log(found.hi / found.lo) > 5 * math.log(single.hi / single.lo)
    assert found.estimate == pytest.approx(math.exp(0.02), rel=1e-6)


def test_rounds_that_differ_more_than_the_players_widen_it_as_well():
    noisy = [timing_of([-0.3, -0.1, 0.0, 0.1, 0.3]) for _ in range(5)]
    found = published(noisy, 0.99)
    pooled = estimate_speedup([ratio for timing in noisy for ratio in timing.log_ratios], 0.99)
    assert found.hi / found.lo == pytest.approx(pooled.hi / pooled.lo)
    assert found.lo < 1 < found.hi


def test_the_published_interval_holds_its_own_estimate():
    found = published([timing_of([0.1, 0.11, 0.1]), timing_of([0.12, 0.1, 0.13])], 0.99)
    assert isinstance(found, Interval)
    assert found.lo <= found.estimate <= found.hi


def test_the_model_under_the_baseline_is_the_references_own(reference_of, settings):
    log, models = [], []
    session, bench = ScriptedSession(lambda _: 1000.0, log), ScriptedBench(1000.0, log)
    plain = bench.local_launches
    bench.local_launches = lambda model, sets, **how: models.append(model) or plain(model, sets, **how)
    reference = reference_of()
    Rounds(session, bench, reference, settings, lambda sets, made: None, set()).run()
    assert set(map(id, models)) == {id(reference.model)}
    assert isinstance(reference.model, torch.nn.Module)


def test_inputs_lie_readable_early_in_segments_that_count_for_no_ratio(rounds_of):
    timing, log, session, _ = rounds_of(1000.0, 2000.0)
    assert [entry for entry in log if entry[0] == "early"] == [("early", timing.launches_per_segment, False)] * 4
    assert timing.early == EarlyLook(1000.0, 1111.0)
    assert 1111.0 not in timing.candidate_us
    assert session.early_s == pytest.approx(2e-3)


def test_the_flush_is_inspected_in_segments_like_any_other_once_early_and_once_later(rounds_of):
    timing, log, *_ = rounds_of(1000.0, 2000.0, kind="cuda", hidden=True)
    inspected = [place for place, entry in enumerate(log) if entry[0] == "inspected"]
    segments = [sum(entry[0] == "A" for entry in log[:place]) for place in inspected]
    assert len(inspected) == 2
    assert {log[place][1:] for place in inspected} == {(timing.launches_per_segment, True)}
    assert segments[0] < segments[1] <= sum(entry[0] == "A" for entry in log) - 5


def test_a_time_that_falls_with_early_inputs_is_looked_at_five_times(rounds_of):
    timing, log, *_ = rounds_of(5000.0, 2000.0)
    assert [entry[0] for entry in log].count("early") == 20
    assert timing.early == EarlyLook(5000.0, 1111.0)


@pytest.fixture
def beside(reference_of, settings):
    """`beside(a_us, inside_us, b_us)`: (Timing, log) of a GPU on which the baseline is timed in the player too."""

    def make(a_us, inside_us, b_us):
        log = []
        session = ScriptedSession(lambda _: a_us, log)
        session.inside_us = inside_us
        bench = ScriptedBench(b_us, log, "cuda")
        return Rounds(session, bench, reference_of(), settings, lambda sets, made: None, {1}).run(), log

    return make


def test_below_a_millisecond_the_speedup_is_over_the_baseline_in_the_candidates_process(beside):
    timing, log = beside(20.0, 20.0, 20.4)
    assert timing.agreeing and timing.speedup.estimate == pytest.approx(1.0)
    assert timing.speedup.hi == pytest.approx(1.02), "the interval reaches to the referee's own baseline"
    assert timing.speedup.lo == pytest.approx(1.0)
    rounds = "".join(entry[0] for entry in log if entry[0] in "ABI")
    assert "ABIIBA" in rounds and "BIAAIB" in rounds


def test_baselines_that_disagree_are_a_note_and_the_referees_own_counts(beside):
    timing, _ = beside(20.0, 40.0, 20.0)
    assert not timing.agreeing and timing.speedup.estimate == pytest.approx(1.0)
    assert timing.speedup.hi == pytest.approx(1.0)
    assert timing.notes == [
        "eager took 40.0 µs in its process and 20.0 µs in the referee's: the speedup is over the latter"
    ]


def test_longer_calls_and_players_that_cannot_have_the_baseline_inside(beside):
    assert "I" not in {entry[0] for entry in beside(5000.0, 5000.0, 5000.0)[1]}
    timing, log = beside(20.0, None, 20.0)
    assert not timing.inside_us and timing.notes == [] and "I" not in {entry[0] for entry in log}


def test_a_baseline_that_fails_inside_is_left_at_that(beside):
    timing, log = beside(20.0, "raises", 20.0)
    assert [entry[0] for entry in log].count("I") == 1
    assert not timing.agreeing and timing.word == "SAME"


def test_a_process_that_dies_with_the_baseline_in_it_is_the_end_of_the_rounds(beside):
    with pytest.raises(Failed, match="died in it"):
        beside(20.0, failed(Status.CRASHED, ReasonCode.EXITED, "died in it"), 20.0)


def test_slowing_the_baseline_inside_down_below_the_guard_does_not_raise_the_low_end(beside):
    honest, cheat = beside(400.0, 400.0, 400.0)[0], beside(400.0, 411.0, 400.0)[0]
    assert cheat.agreeing and cheat.speedup.estimate == pytest.approx(1.0275)
    assert cheat.speedup.lo <= honest.speedup.lo and cheat.word == "UNSURE"


def test_what_has_tf32_on_has_no_strict_baseline_inside(reference_of, settings):
    log = []
    session, bench = ScriptedSession(lambda _: 20.0, log), ScriptedBench(20.0, log, "cuda")
    session.inside_us = 10.0
    timing = Rounds(session, bench, reference_of(), settings, lambda sets, made: None, {1}, strict=False).run()
    assert timing.inside_us == [] and timing.notes == [] and "I" not in {entry[0] for entry in log}


def test_several_players_reach_to_the_referees_baseline_as_well():
    def inside(outside):
        timing = timing_of(outside)
        timing.inside_log_ratios, timing.baseline_us = [0.0, 0.001, -0.001], [20.0]
        timing.speedup = estimate_speedup(timing.inside_log_ratios)
        return timing

    found = published([inside([0.02, 0.021, 0.019]), inside([0.018, 0.02, 0.022])], 0.99)
    assert found.estimate == pytest.approx(1.0, abs=1e-4)
    assert found.hi == pytest.approx(math.exp(0.02), abs=1e-3)
