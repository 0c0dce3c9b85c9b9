"""Looks between the segments of rounds on a scripted device: when, how long, and what they find."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.model.device_limits import CUDA, limits_of
from harness.model.problem import AccuracyRule
from harness.timing.probes.result import ProbeResult
from harness.timing.probes.schedule import Probe
from harness.timing.rounds import Rounds

PROBED = ("inspected", "early", "completed", "valued", "recorded")


@pytest.fixture
def drawn(monkeypatch):
    """`drawn(looks, last)`: {segment: look}, so many looks as are named and no others but the last."""

    def draw(looks, last=Probe.FLUSH):
        monkeypatch.setattr(
            "harness.timing.rounds.ProbeSchedule", lambda kinds: SimpleNamespace(before=looks.get, last=lambda: last)
        )

    return draw


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_who_is_no_candidate_is_timed_alike_and_never_probed(rounds_of, kind):
    probed, without = (rounds_of(1000.0, 2000.0, kind=kind, is_probed=is_probed) for is_probed in (True, False))
    assert {entry[0] for entry in probed[1]} > {entry[0] for entry in without[1]}
    assert not {entry[0] for entry in without[1]}.intersection(PROBED) and not without[0].probe_results
    made = [entry[0] for entry in without[1] if entry[0] in ("A", "verify")]
    assert made.count("verify") == made.count("A"), "the last of its segments is verified as well"
    assert without[0].log_ratios == probed[0].log_ratios and without[0].end_to_end_us == probed[0].end_to_end_us


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_inputs_lie_readable_early_in_segments_that_count_for_no_ratio(rounds_of, drawn, kind):
    drawn({2: Probe.EARLY_READ}, Probe.EARLY_READ)
    timing, log, session, _ = rounds_of(1000.0, 2000.0, kind=kind)
    gated, pair = kind != "cpu", 1 if kind == "cuda" else 2
    early = [entry for entry in log if entry[0] == "early"]
    assert early == [("early", timing.launches_per_segment, gated)] * 2 * pair
    assert timing.probe_results[Probe.EARLY_READ] == ProbeResult(1000.0, 1111.0, limits=limits_of(kind).probe)
    assert 1111.0 not in timing.candidate_us
    assert session.early_s == pytest.approx(2e-3)


@pytest.mark.parametrize(("a_us", "b_us"), [(800.0, 2700.0), (2700.0, 8000.0), (160.0, 2700.0), (20.0, 20.0)])
def test_a_queue_in_which_it_is_looked_at_is_as_long_as_any_that_is_timed(rounds_of, a_us, b_us):
    """Of a queue that is gated a candidate knows the length before anything runs."""
    _, log, *_ = rounds_of(a_us, b_us, kind="cuda", hidden=True, segment_ms=3.0)
    lengths = {kind: {entry[1] for entry in log if entry[0] == kind and entry[2]} for kind in (
        "A", *PROBED
    )}
    assert len(lengths["A"]) == 1 and all(each == lengths["A"] for each in lengths.values())


@pytest.mark.parametrize("in_worker_us", [None, 100.0])
@pytest.mark.parametrize("what", list(Probe))
def test_what_precedes_a_look_is_what_precedes_any_segment_of_the_candidate(
    small_regions, scripted, reference_of, settings, drawn, in_worker_us, what
):
    drawn({segment: what for segment in (0, 1, 3, 6)}, what)
    log = []
    session, backend = scripted.Session(lambda _: 100.0, log), scripted.Backend(100.0, log, "cuda")
    session.in_worker_us, session.early_us = in_worker_us, 100.0
    timing = Rounds(session, backend, reference_of(), settings, lambda sets, made, only=None: None, set()).run()
    assert bool(timing.in_worker_us) == bool(in_worker_us)
    seen = "".join(dict.fromkeys(PROBED, "L").get(entry[0], entry[0]) for entry in log
                   if entry[0] in ("A", "B", "I", *PROBED))
    assert seen.count("L") == 5
    rounds, single_calls = seen[seen.index("L"):], "A" * 5
    assert rounds.endswith("L" + single_calls)
    rounds = rounds.removesuffix(single_calls)
    assert all(rounds[at + 1] == "A" for at, step in enumerate(rounds[:-1]) if step == "L")
    plain, made = ("AIBIAIABAI" if in_worker_us else "ABBABAAB") * 3, rounds.replace("L", "")
    assert plain.startswith(made) and plain[len(made)] == "A", "the last stands where the next segment would"


def test_who_cannot_be_held_any_more_is_not_held_against_times_of_held_queues(
    small_regions, scripted, reference_of, settings, drawn
):
    drawn({1: Probe.LATE_INPUT}, Probe.EARLY_READ)
    log = []
    session, backend = scripted.Session(lambda _: 200.0, log, True), scripted.Backend(2000.0, log, "cuda")
    plain, local = session.launch, backend.local_launches
    session.early_us = 600.0

    def launch(sets, *, gate, **how):  # ungated it shows what the host takes for each launch
        session._time_us = lambda _: 200.0 if gate else 600.0
        return plain(sets, gate=gate, **how)

    session.launch = launch
    backend.local_launches = lambda model, sets, *, gate: replace(local(model, sets, gate=gate), hidden=False if gate else None)
    timing = Rounds(session, backend, reference_of(), settings, lambda sets, made, only=None: None, set()).run()
    assert timing.launch_hidden is False
    found = timing.probe_results[Probe.LATE_INPUT]
    assert found.limits is CUDA.ungated_probe and not found.is_finding


@pytest.mark.parametrize("what", [Probe.EARLY_READ, Probe.LATE_INPUT, Probe.INPUT_VALUE])
def test_where_the_device_waits_for_the_host_all_inputs_of_a_look_lie_open_and_one_launch_is_told_from_the_others(
    small_regions, scripted, reference_of, settings, drawn, what
):
    """A window that opens late lets the host run ahead, so that an honest call too is faster than it usually is."""
    drawn({2: what}, what)
    log = []
    session, backend = scripted.Session(lambda _: 200.0, log, hidden=False), scripted.Backend(2000.0, log, "cuda")
    session.early_us = 20.0  # what a call takes in a segment of open inputs alone
    timing = Rounds(session, backend, reference_of(), settings, lambda sets, made, only=None: None, set()).run()
    [(of_one, seen)] = timing.probe_results.items()  # a look at early inputs is one at late ones here
    assert of_one is (Probe.INPUT_VALUE if what is Probe.INPUT_VALUE else Probe.LATE_INPUT)
    assert (seen.limits, seen.is_finding) == (CUDA.ungated_probe, False)
    assert session.early_s == pytest.approx(1e-3)
    session.completed_later_us = session.valued_later_us = 150.0
    timing = Rounds(session, backend, reference_of(), settings, lambda sets, made, only=None: None, set()).run()
    assert timing.probe_results[of_one].is_certain


def test_looks_are_drawn_for_each_worker_and_one_comes_when_the_rounds_have_ended(rounds_of):
    timing, log, *_ = rounds_of(1000.0, 2000.0, kind="cuda", hidden=True)
    looked = [at for at, entry in enumerate(log) if entry[0] in PROBED]
    assert {entry[0] for entry in log} >= set(PROBED) and len(looked) >= 5
    assert {log[at][1:] for at in looked} == {(timing.launches_per_segment, True)}
    after = [entry for entry in log[looked[-1]:] if entry[0] == "A"]
    assert after == [("A", 1, False)] * 5  # the single calls


@pytest.mark.parametrize(("kind", "segments"), [("cpu", 5 * 2), ("cuda", 1 + 5 * 2)])
def test_a_time_that_falls_with_early_inputs_is_looked_at_in_five_pairs_of_segments(rounds_of, drawn, kind, segments):
    drawn({3: Probe.EARLY_READ})
    timing, log, *_ = rounds_of(5000.0, 2000.0, kind=kind)
    assert [entry[0] for entry in log].count("early") == segments
    assert timing.probe_results[Probe.EARLY_READ] == ProbeResult(5000.0, 1111.0, limits=limits_of(kind).probe)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_who_takes_longer_on_inputs_of_another_family_is_seen_in_segments_that_count_for_no_ratio(
    small_regions, scripted, reference_of, settings, drawn, kind
):
    drawn({2: Probe.INPUT_VALUE})
    log = []
    session, backend = scripted.Session(lambda _: 5000.0, log), scripted.Backend(2000.0, log, kind)
    session.valued_later_us = 4000.0
    timing = Rounds(session, backend, reference_of(), settings, lambda sets, made, only=None: None, set()).run()
    assert [entry[0] for entry in log].count("valued") == 5
    found = timing.probe_results[Probe.INPUT_VALUE]
    assert found.usual_us == 9000.0 and found.is_finding and found.findings == 5
    assert set(timing.candidate_us) == {5000.0}


def test_where_inputs_have_no_other_family_nothing_is_made_of_them(small_regions, scripted, reference_of, settings):
    log = []
    reference = reference_of(accuracy=AccuracyRule())
    assert reference.timed_families == ()
    session, backend = scripted.Session(lambda _: 5000.0, log), scripted.Backend(2000.0, log)
    timing = Rounds(session, backend, reference, settings, lambda sets, made, only=None: None, set()).run()
    assert Probe.INPUT_VALUE not in timing.probe_results and Probe.EARLY_READ in timing.probe_results
    assert "valued" not in {entry[0] for entry in log}
