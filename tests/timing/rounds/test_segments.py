"""Segments of rounds on a scripted device: how long, on which inputs, and what is judged."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from harness.launch.failures import Failed, failed
from harness.model.verdict import ReasonCode, Status
from harness.timing.probes.runner import ProbeRunner
from harness.timing.rounds import Rounds
from harness.timing.segment_length import launches_wanted


def test_the_slow_lead_in_of_each_segment_is_thrown_away(rounds_of):
    timing, *_ = rounds_of(1000.0)
    assert set(timing.candidate_us) == {1000.0}
    assert set(timing.baseline_us) == {2000.0}


PROBED = ("inspected", "early", "completed", "valued")


def test_all_of_a_part_of_a_round_has_run_before_its_outputs_are_judged(rounds_of):
    _, log, *_ = rounds_of(1000.0)
    steps = [entry[0] for entry in log if entry[0] != "synchronize"][:-10]
    judged = [at for at, step in enumerate(steps) if step == "verify"]
    assert steps[: judged[3] + 1] == ["A", "B", "verify", *["A", "verify"] * 3]  # a size, and the warm-up
    rounds = "".join({"verify": ".", "A": "A", "B": "B"}.get(step, "L") for step in steps[judged[3] + 1:])
    for looked, judged_apart in (("completed", ".."), ("inspected", "."), ("early", "."), ("valued", ".")):
        assert looked in steps and f"L{judged_apart}" in rounds
    while "L." in rounds:  # what is looked at is judged by itself, before the segment that follows
        rounds = rounds.replace("L..", "").replace("L.", "")
    assert "L" not in rounds and rounds.startswith(("AB.A.A.BA." * 3)[: 5 * 5])  # BB is one segment


@pytest.mark.parametrize("drawn", [0, 1, 3])
def test_every_launch_is_judged_but_of_the_lead_ins_of_timed_segments_one_in_four(rounds_of, monkeypatch, drawn):
    monkeypatch.setattr("harness.timing.segments.secrets.randbelow", lambda most: min(drawn, most - 1))
    _, log, *_ = rounds_of(1000.0)
    made = sum(entry[1] for entry in log if entry[0] in ("A", *PROBED))
    judged = sum(entry[1] for entry in log if entry[0] == "verify")
    timed = sum(entry[0] == "A" and entry[1] > 1 for entry in log)
    assert judged == made - (timed if drawn else 0)


@pytest.mark.usefixtures("small_regions")
def test_the_candidate_has_new_inputs_in_each_launch_and_none_that_eager_is_timed_on(
    scripted, reference_of, settings
):
    log, seen, of_eager = [], [], []
    session, backend = scripted.Session(lambda _: 1000.0, log), scripted.Backend(1000.0, log)
    plain_launch, plain_local = session.launch, backend.local_launches

    def launch(sets, **how):
        seen.extend(sets)
        return plain_launch(sets, **how)

    def local_launches(model, sets, **how):
        of_eager.extend(sets)
        return plain_local(model, sets, **how)

    session.launch, backend.local_launches = launch, local_launches
    Rounds(session, backend, reference_of(), settings, lambda sets, made, only=None: None, set()).run()
    contents = {bytes(each.region.numpy()) for each in seen}
    assert len(contents) == len(seen)
    own = {bytes(each.region.numpy()) for each in of_eager}
    assert 1 < len(own) < len(of_eager) and not own & contents


def test_segments_are_about_as_long_as_the_settings_say_in_whole_rotations(rounds_of):
    _, log, session, _ = rounds_of(500.0, 1000.0, segment_ms=3.0)
    assert {entry[1] for entry in log if entry[0] == "A" and entry[1] > 2} == {1 + 8}
    assert {entry[1] for entry in log if entry[0] == "B" and entry[1] > 2} == {1 + 2 * 3}
    assert session.opened == [2, 9]


def test_arms_that_take_about_as_long_have_segments_of_as_many_launches(rounds_of):
    """By the first look at 600 and 1100 µs it would be 5 and 3, of which each mean is another one."""
    _, log, _, _ = rounds_of(600.0, 1100.0, segment_ms=3.0)
    assert {entry[1] for entry in log if entry[0] == "A" and entry[1] > 2} == {1 + 4}
    assert {entry[1] for entry in log if entry[0] == "B" and entry[1] > 2} == {1 + 2 * 4}


def test_what_is_made_as_one_counts_as_two_segments(scripted, reference_of, settings):
    """Of eight launches the middle half would leave out both that are slow, and of each four only one of two."""
    log, wanted = [], replace(settings, segment_ms=4.0)
    session, backend = scripted.Session(lambda _: 1000.0, log), scripted.Backend(1000.0, log)
    plain = backend.local_launches

    def local_launches(model, sets, **how):
        made = plain(model, sets, **how)
        if len(sets) == 9:
            made.times_us[1:] = [3000.0, 3000.0, *[1000.0] * 6]
        return made

    backend.local_launches = local_launches
    timing = Rounds(session, backend, reference_of(), wanted, lambda sets, made, only=None: None, set()).run()
    assert timing.log_ratios[0] == pytest.approx(math.log(3) / 2 / 2)


@pytest.mark.parametrize(("time_us", "launches", "sets"), [(1.0, 17, 17), (1e6, 2, 3)])
def test_a_segment_has_two_launches_at_least_and_seventeen_at_most(rounds_of, time_us, launches, sets):
    timing, *_ = rounds_of(time_us, time_us)
    assert timing.launches_per_segment == launches and timing.input_sets == sets


@pytest.mark.usefixtures("small_regions")
def test_a_clock_that_says_next_to_nothing_makes_no_long_segments_by_the_judges_own(scripted, reference_of, settings):
    log, wanted = [], replace(settings, segment_ms=1.0)
    session, backend = scripted.Session(lambda _: 0.001, log, steps_us=5000.0), scripted.Backend(2000.0, log)
    timing = Rounds(session, backend, reference_of(), wanted, lambda sets, made, only=None: None, set()).run()
    assert timing.launches_per_segment == 1 + 4  # twenty times a millisecond, in launches of five


def test_a_small_memory_makes_segments_shorter_and_a_look_ready_all_the_same(
    scripted, reference_of, settings, monkeypatch
):
    log, ready = [], []
    prepare = ProbeRunner.prepare
    monkeypatch.setattr(
        ProbeRunner, "prepare", lambda self, inputs, count: ready.append((len(log), count)) or prepare(self, inputs, count)
    )
    session, backend = scripted.Session(lambda _: 10.0, log), scripted.Backend(10.0, log)
    reference = reference_of()
    reference.memory = replace(reference.memory, launches=3)
    timing = Rounds(session, backend, reference, settings, lambda sets, made, only=None: None, set()).run()
    assert timing.input_sets == 3
    assert timing.lacked_launches
    counts = [entry[1] for entry in log if entry[0] == "completed"]
    assert set(counts) == {timing.launches_per_segment}
    at, count = ready[0]
    assert count == counts[0]
    assert [entry[0] for entry in log[:at] if entry[0] in ("A", "completed")] == ["A"]  # its size was just measured


def test_a_wrong_output_in_a_timed_launch_ends_the_rounds(rounds_of):
    calls = []

    def verify(sets, made, only=None):
        calls.append(1)
        if len(calls) == 9:
            raise failed(Status.INCORRECT, ReasonCode.WRONG_VALUES, "wrong in the end")

    with pytest.raises(Failed, match="wrong in the end"):
        rounds_of(1000.0, verify=verify)


@pytest.mark.usefixtures("small_regions")
def test_the_model_under_the_baseline_is_the_references_own(scripted, reference_of, settings):
    log, models = [], []
    session, backend = scripted.Session(lambda _: 1000.0, log), scripted.Backend(1000.0, log)
    plain = backend.local_launches
    backend.local_launches = lambda model, sets, **how: models.append(model) or plain(model, sets, **how)
    reference = reference_of()
    Rounds(session, backend, reference, settings, lambda sets, made, only=None: None, set()).run()
    assert set(map(id, models)) == {id(reference.model)}
    assert isinstance(reference.model, torch.nn.Module)


@pytest.mark.parametrize(("round_s", "launches"), [(math.inf, 2), (0.3, 2), (0.2, 1), (0.001, 1)])
def test_where_the_harness_takes_most_of_a_launch_rounds_are_short_enough_for_a_look_at_ten(round_s, launches):
    """A launch of a millisecond that takes 25 ms with its flush, as on a CPU with a cache of 256 MiB."""
    sizing = SimpleNamespace(candidate_us=[1000.0], baseline_us=[1000.0], wall_us=[25_000.0])
    assert launches_wanted(sizing, 2.0, round_s) == {"A": launches, "B": launches}


@pytest.mark.usefixtures("small_regions")
@pytest.mark.parametrize(("ungated_us", "opened", "launches"), [(700.0, [2, 3, 5], 5), (199.0, [2, 9], 9), (390.0, [2, 4], 4)])
def test_a_call_that_takes_less_than_half_once_it_is_queued_ahead_gets_longer_segments(
    scripted, reference_of, settings, ungated_us, opened, launches
):
    """Of 0.2 ms when held: the host's time may have been in the first look at it."""
    log = []
    session, backend = scripted.Session(lambda segment: ungated_us if segment < 1 else 200.0, log, True), scripted.Backend(
        3000.0, log, kind="cuda"
    )
    timing = Rounds(
        session, backend, reference_of(), replace(settings, segment_ms=1.0), lambda sets, made, only=None: None, set()
    ).run()
    assert session.opened == opened
    assert timing.launches_per_segment == launches and timing.input_sets == max(opened)
    assert [entry[1] for entry in log if entry[0] == "A"][5:-5] and {
        entry[1] for entry in [each for each in log if each[0] == "A"][5:-5]
    } == {launches}
    assert set(timing.candidate_us) == {200.0}
