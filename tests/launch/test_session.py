"""A session with workers that keep to the protocol, and with workers that break it."""

from __future__ import annotations

import socket
import threading
import time

import pytest
import torch

from harness.launch.failures import Failed
from harness.model.device_limits import CUDA
from harness.model.verdict import ReasonCode, Status

PROTOCOL = (Status.REJECTED, ReasonCode.PROTOCOL)


def verdict_of(caught):
    return caught.value.verdict.status, caught.value.verdict.reason_code


def test_an_honest_worker_is_believed_its_times_and_clocked_by_the_judge(opened):
    session, _, sets = opened(lambda far: (far.launches(2, times=[11.0, 13.0]), far.launches(1)))
    made = session.launch(sets, gate=False)
    assert [launch.time_us for launch in made.launches] == [11.0, 13.0]
    assert all(0 < launch.flush_us < launch.wall_us for launch in made.launches)
    for launch in made.launches:
        assert launch.flush_us + launch.window_us == pytest.approx(launch.wall_us)
    assert made.end_to_end_us == 12.0
    assert made.hidden is None
    assert made.inputs_kept == [True, True]
    assert len(session.launch(sets[:1], gate=False).launches) == 1


def test_no_launch_begins_once_the_budget_of_its_row_is_spent(opened):
    session, _, sets = opened(lambda far: far.launches(2))
    session.ends_s = time.monotonic() + 1000
    session.launch(sets, gate=False)
    session.ends_s = time.monotonic() - 1
    with pytest.raises(Failed, match=r"still being checked .* \(row_budget_s, or the job.s budget_s\), in calls of .* s each") as caught:
        session.launch(sets, gate=False)
    assert verdict_of(caught) == (Status.TIMED_OUT, ReasonCode.ROW_TIMEOUT)


def test_numbers_of_launches_never_repeat(opened):
    firsts = []
    session, _, sets = opened(lambda far: firsts.extend(far.launches(2) for _ in range(3)))
    for _ in range(3):
        session.launch(sets, gate=False)
    session.child.wait(5.0)  # its last answer comes before it has put the number down
    assert firsts == [1, 4, 7]


@pytest.mark.parametrize(("on_gpu", "holding", "helped"), [
    ({1, 20}, (), False), ({1, 20, 21}, (), True), ({1, 20, 99}, (), False), (None, {20}, False), (None, {20, 21}, True),
], ids=["the worker", "and another of its own", "and a stranger", "the worker's files", "and another's"])
def test_a_process_of_the_candidates_on_the_gpu_is_noted_beside_the_worker(
    opened, monkeypatch, on_gpu, holding, helped
):
    session, *_ = opened(lambda far: None)
    monkeypatch.setattr(session.backend, "processes", lambda: on_gpu, raising=False)
    monkeypatch.setattr("harness.launch.session.processes.descendants", lambda pid: [20, 21, 22])
    monkeypatch.setattr("harness.launch.session.processes.holds_open", lambda pid, begins: pid in holding)
    session.note_helpers()
    assert session.helped is helped
    monkeypatch.setattr(session.backend, "processes", lambda: {1, 20})
    session.note_helpers()
    assert session.helped is helped, "who was there once may have done its part"


@pytest.fixture
def held(opened, monkeypatch):
    """`held(script)`: like `opened`, with a device on which a queue can be gated."""

    def make(script):
        session, reference, sets = opened(script)
        monkeypatch.setattr(session.backend, "limits", CUDA)
        return session, reference, sets

    return make


def making(began, made):
    """A script whose worker makes a gated queue of two: `began` is set before, and it ends when `made` is."""

    def script(far):
        first = far.hear()["first"]
        began.set()
        far.say({"turn": first})
        assert made.wait(5.0)
        far.say({"queued": 2})
        far.flush(first)
        far.begin(first + 1)
        far.say({"turn": first + 2})
        far.say({"launched": [{"time_us": 10.0, "host_us": 5.0, "values": []}] * 2, "end_to_end_us": 12.0})

    return script


def test_meanwhile_is_while_the_worker_makes_a_held_queue(held):
    began, made, staged = threading.Event(), threading.Event(), []
    session, _, sets = held(making(began, made))

    def meanwhile():
        assert began.wait(5.0), "the worker had no command yet"
        staged.append(session.backend._sets)
        made.set()

    launches = session.launch(sets, gate=True, timeout_s=10.0, meanwhile=meanwhile)
    assert len(launches.launches) == 2 and launches.hidden is True
    assert staged == [sets]  # and what it is to be given lies ready by then


def test_a_slow_meanwhile_counts_neither_as_the_workers_time_nor_against_the_hold(held):
    began, made = threading.Event(), threading.Event()
    session, _, sets = held(making(began, made))

    def meanwhile():
        time.sleep(0.8)  # more than the session's limit, and than the patience with a queue that is not full
        made.set()

    assert session.launch(sets, gate=True, meanwhile=meanwhile).hidden is True


def test_meanwhile_is_over_before_a_queue_begins_that_is_not_held(opened):
    heard, seen = threading.Event(), []

    def script(far):
        command = far.socket.recv(1, socket.MSG_PEEK)
        heard.set()
        assert command
        far.launches(2)

    session, _, sets = opened(script)
    session.launch(sets, gate=False, meanwhile=lambda: seen.append(heard.wait(0.2)))
    assert seen == [False]


def whole(frame):
    """A script that plays the turns honestly and then reports `frame`."""

    def script(far):
        first = far.hear()["first"]
        for index in range(2):
            far.begin(first + index)
        far.say({"turn": first + 2})
        far.say({"queued": 2})
        far.say(frame)
        far.stay()

    return script


def turns(*numbers):
    def script(far):
        far.hear()
        for number in numbers:
            far.say({"turn": number})
        far.stay()

    return script


GOOD = {"host_us": 1.0, "values": [], "time_us": 10.0}


VIOLATIONS = {
    "a turn beyond the end": turns(9),
    "a turn of long ago": turns(-4),
    "a turn taken twice": turns(1, 1),
    "turns in the wrong order": turns(2, 1),
    "a turn that is no number": turns("one"),
    "a turn of nothing": turns(None),
    "a queued count that is no number": whole({"queued": "two"}),
    "too few launches": whole({"launched": [GOOD], "end_to_end_us": 1.0}),
    "too many launches": whole({"launched": [GOOD] * 3, "end_to_end_us": 1.0}),
    "launches that are no list": whole({"launched": {"0": GOOD}, "end_to_end_us": 1.0}),
    "launches that are no reports": whole({"launched": [1, 2], "end_to_end_us": 1.0}),
    "launches of null": whole({"launched": [None, None], "end_to_end_us": 1.0}),
    "another answer than was asked for": whole({"profiled": {}}),
    "an empty answer": whole({}),
    "a negative time": whole({"launched": [GOOD, {**GOOD, "time_us": -1.0}], "end_to_end_us": 1.0}),
    "a time of zero": whole({"launched": [GOOD, {**GOOD, "time_us": 0}], "end_to_end_us": 1.0}),
    "a time that is no number": whole({"launched": [GOOD, {**GOOD, "time_us": "fast"}], "end_to_end_us": 1.0}),
    "a time of true": whole({"launched": [GOOD, {**GOOD, "time_us": True}], "end_to_end_us": 1.0}),
    "a time that is missing": whole({"launched": [GOOD, {"host_us": 1.0}], "end_to_end_us": 1.0}),
    "a time of NaN": whole({"launched": [GOOD, {**GOOD, "time_us": float("nan")}], "end_to_end_us": 1.0}),
    "an infinite time": whole({"launched": [GOOD, {**GOOD, "time_us": float("inf")}], "end_to_end_us": 1.0}),
    "a host time that is no number": whole({"launched": [GOOD, {**GOOD, "host_us": "x"}], "end_to_end_us": 1.0}),
    "bytes beyond an output of a thousand digits": whole({"launched": [GOOD, {**GOOD, "beyond": [10**1000, 8]}], "end_to_end_us": 1.0}),
    "bytes beyond an output that are less than none": whole({"launched": [GOOD, {**GOOD, "beyond": [8, -8]}], "end_to_end_us": 1.0}),
    "bytes beyond an output in words": whole({"launched": [GOOD, {**GOOD, "beyond": ["8", 8]}], "end_to_end_us": 1.0}),
    "values that are no list": whole({"launched": [GOOD, {**GOOD, "values": 3}], "end_to_end_us": 1.0}),
    "an end-to-end time that is no number": whole({"launched": [GOOD, GOOD], "end_to_end_us": "x"}),
    "an endless end-to-end time": whole({"launched": [GOOD, GOOD], "end_to_end_us": float("inf")}),
    "an end-to-end time that is a list": whole({"launched": [GOOD, GOOD], "end_to_end_us": [1]}),
}


@pytest.mark.parametrize("script", VIOLATIONS.values(), ids=VIOLATIONS)
def test_every_violation_of_the_protocol_is_rejected_as_one(opened, script):
    session, _, sets = opened(script)
    with pytest.raises(Failed) as caught:
        session.launch(sets, gate=False)
    assert verdict_of(caught) == PROTOCOL


@pytest.mark.parametrize("error", [TypeError, KeyError, ValueError, OverflowError])
@pytest.mark.parametrize("step", ["poll", "release", "flush_fault", "open_window", "written_late", "slots_unchanged"])
def test_an_exception_of_the_judges_own_is_not_said_to_break_the_protocol(opened, cpu_backend, monkeypatch, step, error):
    def defect(*_, **__):
        raise error("of the judge's own")

    session, _, sets = opened(lambda far: far.launches(2))
    monkeypatch.setattr(cpu_backend, step, defect)
    with pytest.raises(error, match="of the judge's own"):
        session.launch(sets, gate=False)


def test_the_end_of_the_queue_before_may_be_seen_late(opened):
    def script(far):
        first = far.launches(2)
        far.say({"turn": first + 2})
        far.launches(2)

    session, _, sets = opened(script)
    assert len(session.launch(sets, gate=False).launches) == 2
    assert len(session.launch(sets, gate=False).launches) == 2


def test_launches_that_were_never_let_go_are_not_believed(opened):
    def script(far):
        far.hear()
        far.say({"launched": [GOOD, GOOD], "end_to_end_us": 1.0})
        far.stay()

    session, _, sets = opened(script)
    with pytest.raises(Failed) as caught:
        session.launch(sets, gate=False)
    assert verdict_of(caught) == PROTOCOL


def test_an_exception_in_forward_is_told_with_its_line(opened):
    raised = {"type": "RuntimeError", "message": "tile", "where": "/c/x.py:9"}
    session, _, sets = opened(whole({"launched": [GOOD, {"raised": raised, "time_us": None}], "end_to_end_us": 1.0}))
    with pytest.raises(Failed) as caught:
        session.launch(sets, gate=False)
    assert verdict_of(caught) == (Status.INCORRECT, ReasonCode.RAISED)
    assert "in forward at x.py:9" in caught.value.verdict.reason


def test_a_broken_context_is_a_crash(opened):
    session, _, sets = opened(whole({"broken": {"type": "AcceleratorError", "message": "CUDA error: illegal"}}))
    with pytest.raises(Failed) as caught:
        session.launch(sets, gate=False)
    assert verdict_of(caught) == (Status.CRASHED, ReasonCode.CUDA_ERROR)


@pytest.mark.parametrize("time_us", [10.0, None])
def test_a_fault_of_form_is_handed_on_with_its_launch_and_needs_no_time(opened, time_us):
    fault = {"code": "wrong_shape", "detail": "x"}
    session, _, sets = opened(whole({"launched": [GOOD, {"fault": fault, "time_us": time_us}], "end_to_end_us": 1.0}))
    made = session.launch(sets, gate=False)
    assert [launch.fault for launch in made.launches] == [None, fault]


def test_inputs_that_were_written_to_are_seen(opened, cpu_backend):
    def script(far):
        first = far.hear()["first"]
        far.begin(first)
        cpu_backend._slots[0][1][3] ^= 1
        far.begin(first + 1)
        far.say({"turn": first + 2})
        far.say({"queued": 2})
        far.say({"launched": [GOOD, GOOD], "end_to_end_us": 1.0})

    session, _, sets = opened(script)
    assert session.launch(sets, gate=False).inputs_kept == [False, True]


def test_outputs_are_what_lies_in_the_outbox(opened, cpu_backend):
    session, reference, sets = opened(lambda far: far.launches(2))
    session.launch(sets, gate=False)
    reference.output_specs[0].view(cpu_backend.outbox(1)).fill_(5)
    (output,) = session.outputs(reference, 1)
    assert torch.equal(output, torch.full((16, 16), 5.0))


@pytest.mark.parametrize("listing", [None, [], "x", 3])
def test_a_profile_that_is_no_listing_breaks_the_protocol(opened, listing):
    def script(far):
        first = far.hear()["first"]
        far.begin(first)
        far.say({"turn": first + 1})
        far.say({"profiled": listing})
        far.stay()

    session, reference, _ = opened(script)
    with pytest.raises(Failed) as caught:
        session.profile(reference.draw())
    assert verdict_of(caught) == PROTOCOL


def test_a_context_that_breaks_while_eager_is_timed_in_it_is_told_so(opened):
    session, _, sets = opened(whole({"broken": {"type": "AcceleratorError", "message": "CUDA error: illegal"}}))
    with pytest.raises(Failed, match="while eager was timed in its process"):
        session.time_reference(sets, gate=False)


def test_an_eager_that_raises_in_the_worker_is_left_out_and_the_worker_goes_on(opened):
    raised = {"type": "RuntimeError", "message": "patched", "where": "/c/x.py:9"}
    session, _, sets = opened(lambda far: (far.launches(2, report={"raised": raised}), far.launches(2)))
    assert "RuntimeError: patched" in session.time_reference(sets, gate=False)
    assert len(session.launch(sets, gate=False).launches) == 2


@pytest.mark.parametrize("answer", [{"compilations": 3}, {"compilations": "3"}, {"compilations": True}, {}])
def test_the_number_of_compilations_is_a_whole_number_or_breaks_the_protocol(opened, answer):
    session, *_ = opened(lambda far: (far.hear(), far.say(answer)))
    if answer == {"compilations": 3}:
        assert session.compilations() == 3
    else:
        with pytest.raises(Failed, match="no number of compilations"):
            session.compilations()


def test_the_evidence_of_an_exception_is_of_the_launch_that_raised(opened):
    def script(far):
        first = far.hear()["first"]
        far.begin(first)
        far.say({"turn": first + 2})
        far.say({"queued": 1})
        far.say({"launched": [{"raised": {"type": "ValueError", "message": "no"}}], "end_to_end_us": 1.0})
        far.stay()

    session, _, sets = opened(script)
    with pytest.raises(Failed) as caught:
        session.launch(sets, gate=False)
    assert caught.value.verdict.reason_code is ReasonCode.RAISED
    assert caught.value.evidence.recipe.seed == sets[0].seed
    assert caught.value.evidence.recipe.before == ()
