"""A session with players that keep to the protocol, break it, fall silent or die, at every step."""

from __future__ import annotations

import re
import time

import pytest
import torch

from harness.referee.failures import Failed
from harness.verdict import ReasonCode, Status

PROTOCOL = (Status.REJECTED, ReasonCode.PROTOCOL)
LOAD_TIMEOUT = (Status.TIMED_OUT, ReasonCode.LOAD_TIMEOUT)
LAUNCH_TIMEOUT = (Status.TIMED_OUT, ReasonCode.LAUNCH_TIMEOUT)
EXITED = (Status.CRASHED, ReasonCode.EXITED)


def verdict_of(caught):
    return caught.value.verdict.status, caught.value.verdict.reason_code


def test_an_honest_player_is_believed_its_times_and_clocked_by_the_referee(opened):
    session, _, sets = opened(lambda far: (far.launches(2, times=[11.0, 13.0]), far.launches(1)))
    made = session.launch(sets, hold=False)
    assert [launch.time_us for launch in made.launches] == [11.0, 13.0]
    assert all(launch.wall_us > 0 for launch in made.launches)
    assert made.end_to_end_us == 12.0
    assert made.hidden is None
    assert made.inputs_kept == [True, True]
    assert len(session.launch(sets[:1], hold=False).launches) == 1


def test_numbers_of_launches_never_repeat(opened):
    firsts = []
    session, _, sets = opened(lambda far: firsts.extend(far.launches(2) for _ in range(3)))
    for _ in range(3):
        session.launch(sets, hold=False)
    assert firsts == [1, 4, 7]


def test_state_that_matches_the_reference_is_no_difference(session_with, reference_of):
    session = session_with(lambda far: far.load())
    assert session.load("/x.py", reference_of(), {}, 1) is None


LINEAR = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
    def forward(self, x):
        return self.linear(x)
def get_inputs():
    return [torch.rand(1, 3)]
"""


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({}, "no parameter or buffer named 'linear.weight'"),
        ({"linear.weight": ["float32", [2, 3]]}, "no parameter or buffer named 'linear.bias'"),
        ({"linear.weight": ["float16", [2, 3]], "linear.bias": ["float32", [2]]}, "linear.weight is .*float16"),
        ({"linear.weight": ["float32", [3, 2]], "linear.bias": ["float32", [2]]}, r"linear.weight is .*\[3, 2\]"),
        ("nonsense", "no parameter or buffer"),
        (None, "no parameter or buffer"),
    ],
    ids=["nothing", "no bias", "another type", "another shape", "no mapping", "no state at all"],
)
def test_state_that_differs_is_put_into_words(session_with, reference_of, state, said):
    session = session_with(lambda far: far.load({"loaded": True, "state": state, "alike": False}))
    assert re.search(said, session.load("/x.py", reference_of(LINEAR, {}), {}, 1))


def test_parameters_of_the_right_form_and_other_values_differ_too(session_with, reference_of):
    state = {"linear.weight": ["float32", [2, 3]], "linear.bias": ["float32", [2]]}
    session = session_with(lambda far: far.load({"loaded": True, "state": state, "alike": True}))
    assert "other values" in session.load("/x.py", reference_of(LINEAR, {}), {}, 1)


BEFORE_LOADING = {
    "before it greets": lambda far: None,
    "before it has its device": lambda far: far.say({"hello": 1}),
    "while it loads": lambda far: far.greet(),
}


@pytest.mark.parametrize("script", BEFORE_LOADING.values(), ids=BEFORE_LOADING)
@pytest.mark.parametrize(
    ("how", "verdict"),
    [
        ({"death": "exited with status 3"}, EXITED),
        ({"death": "killed by SIGSEGV"}, (Status.CRASHED, ReasonCode.SIGNAL)),
    ],
    ids=["exit", "signal"],
)
def test_a_player_that_dies_before_it_is_loaded_has_crashed(session_with, reference_of, script, how, verdict):
    with pytest.raises(Failed) as caught:
        session_with(script, **how, said="warning\nlast words\n").load("/x.py", reference_of(), {}, 1)
    assert verdict_of(caught) == verdict
    assert how["death"] in caught.value.verdict.reason
    assert "last words" in caught.value.verdict.reason


@pytest.mark.parametrize("script", BEFORE_LOADING.values(), ids=BEFORE_LOADING)
def test_a_player_that_falls_silent_before_it_is_loaded_is_timed_out(session_with, reference_of, script):
    def silent(far):
        script(far)
        time.sleep(1.5)

    began = time.monotonic()
    with pytest.raises(Failed) as caught:
        session_with(silent).load("/x.py", reference_of(), {}, 1)
    assert verdict_of(caught) == LOAD_TIMEOUT
    assert "0.6 s" in caught.value.verdict.reason
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("body", [b"garbage", b"[]", b'"ok"', b"\xff"])
def test_a_player_that_answers_nonsense_breaks_the_protocol(session_with, reference_of, body):
    def script(far):
        far.greet()
        far.hear()
        far.raw(body)
        time.sleep(1)

    with pytest.raises(Failed) as caught:
        session_with(script).load("/x.py", reference_of(), {}, 1)
    assert verdict_of(caught) == PROTOCOL


def test_an_exception_while_loading_is_told_as_such(session_with, reference_of):
    raised = {"type": "ValueError", "message": "no", "where": "/c/x.py:3"}
    with pytest.raises(Failed) as caught:
        session_with(lambda far: far.load({"raised": raised})).load("/x.py", reference_of(), {}, 1)
    assert verdict_of(caught) == (Status.INCORRECT, ReasonCode.RAISED)
    assert "x.py:3" in caught.value.verdict.reason


def test_memory_that_the_system_took_away_is_named(session_with, reference_of):
    session = session_with(lambda far: far.greet(), death="killed by the system for using more than 1.0 GB of memory")
    session.child.ran_out_of_memory = True
    with pytest.raises(Failed) as caught:
        session.load("/x.py", reference_of(), {}, 1)
    assert verdict_of(caught) == (Status.OUT_OF_MEMORY, ReasonCode.HOST_MEMORY)


def whole(frame):
    """A script that plays the turns honestly and then reports `frame`."""

    def script(far):
        first = far.hear()["first"]
        for index in range(2):
            far.begin(first + index)
        far.say({"turn": first + 2})
        far.say({"queued": 2})
        far.say(frame)
        time.sleep(1)

    return script


def turns(*numbers):
    def script(far):
        far.hear()
        for number in numbers:
            far.say({"turn": number})
        time.sleep(1)

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
    "values that are no list": whole({"launched": [GOOD, {**GOOD, "values": 3}], "end_to_end_us": 1.0}),
    "an end-to-end time that is no number": whole({"launched": [GOOD, GOOD], "end_to_end_us": "x"}),
    "an endless end-to-end time": whole({"launched": [GOOD, GOOD], "end_to_end_us": float("inf")}),
    "an end-to-end time that is a list": whole({"launched": [GOOD, GOOD], "end_to_end_us": [1]}),
}


@pytest.mark.parametrize("script", VIOLATIONS.values(), ids=VIOLATIONS)
def test_every_violation_of_the_protocol_is_rejected_as_one(opened, script):
    session, _, sets = opened(script)
    with pytest.raises(Failed) as caught:
        session.launch(sets, hold=False)
    assert verdict_of(caught) == PROTOCOL


def test_the_end_of_the_queue_before_may_be_seen_late(opened):
    def script(far):
        first = far.launches(2)
        far.say({"turn": first + 2})
        far.launches(2)

    session, _, sets = opened(script)
    assert len(session.launch(sets, hold=False).launches) == 2
    assert len(session.launch(sets, hold=False).launches) == 2


def test_launches_that_were_never_let_go_are_not_believed(opened):
    def script(far):
        far.hear()
        far.say({"launched": [GOOD, GOOD], "end_to_end_us": 1.0})
        time.sleep(1)

    session, _, sets = opened(script)
    with pytest.raises(Failed) as caught:
        session.launch(sets, hold=False)
    assert verdict_of(caught) == PROTOCOL


DEATHS = {
    "before its first turn": lambda far: far.hear(),
    "after its first turn": lambda far: (far.hear(), far.say({"turn": 1}), far.hear()),
    "before it reports": lambda far: [
        far.hear(), far.begin(1), far.begin(2), far.say({"turn": 3}), far.say({"queued": 2}),
    ],
    "in the middle of a frame": lambda far: (far.hear(), far.socket.sendall(b"\x00\x00\x01\x00{")),
}


@pytest.mark.parametrize("script", DEATHS.values(), ids=DEATHS)
def test_a_player_that_dies_in_forward_has_crashed_whenever_it_does(opened, script):
    session, _, sets = opened(script, death="killed by SIGSEGV")
    with pytest.raises(Failed) as caught:
        session.launch(sets, hold=False)
    assert verdict_of(caught) == (Status.CRASHED, ReasonCode.SIGNAL)
    assert "running forward" in caught.value.verdict.reason


SILENCES = {
    "before its first turn": lambda far: far.hear(),
    "after its first turn": lambda far: (far.hear(), far.say({"turn": 1}), far.hear()),
    "before it reports": lambda far: (far.hear(), far.say({"queued": 2})),
}


@pytest.mark.parametrize("script", SILENCES.values(), ids=SILENCES)
def test_a_player_that_hangs_in_forward_is_timed_out(opened, script):
    def silent(far):
        script(far)
        time.sleep(2)

    session, _, sets = opened(silent)
    began = time.monotonic()
    with pytest.raises(Failed) as caught:
        session.launch(sets, hold=False)
    assert verdict_of(caught) == LAUNCH_TIMEOUT
    assert "2 calls of forward did not end within 0.6 s" in caught.value.verdict.reason
    assert time.monotonic() - began < 2


def test_a_player_that_talks_without_end_is_timed_out_too(opened):
    def chatter(far):
        far.hear()
        for _ in range(2000):
            far.say({"queued": 2})
            time.sleep(0.001)

    session, _, sets = opened(chatter)
    with pytest.raises(Failed) as caught:
        session.launch(sets, hold=False)
    assert verdict_of(caught) in (LAUNCH_TIMEOUT, PROTOCOL)


def test_an_exception_in_forward_is_told_with_its_line(opened):
    raised = {"type": "RuntimeError", "message": "tile", "where": "/c/x.py:9"}
    session, _, sets = opened(whole({"launched": [GOOD, {"raised": raised, "time_us": None}], "end_to_end_us": 1.0}))
    with pytest.raises(Failed) as caught:
        session.launch(sets, hold=False)
    assert verdict_of(caught) == (Status.INCORRECT, ReasonCode.RAISED)
    assert "in forward at x.py:9" in caught.value.verdict.reason


def test_a_broken_context_is_a_crash(opened):
    session, _, sets = opened(whole({"broken": {"type": "AcceleratorError", "message": "CUDA error: illegal"}}))
    with pytest.raises(Failed) as caught:
        session.launch(sets, hold=False)
    assert verdict_of(caught) == (Status.CRASHED, ReasonCode.CUDA_ERROR)


@pytest.mark.parametrize("time_us", [10.0, None])
def test_a_fault_of_form_is_handed_on_with_its_launch_and_needs_no_time(opened, time_us):
    fault = {"code": "wrong_shape", "detail": "x"}
    session, _, sets = opened(whole({"launched": [GOOD, {"fault": fault, "time_us": time_us}], "end_to_end_us": 1.0}))
    made = session.launch(sets, hold=False)
    assert [launch.fault for launch in made.launches] == [None, fault]


def test_inputs_that_were_written_to_are_seen(opened, cpu_bench):
    def script(far):
        first = far.hear()["first"]
        far.begin(first)
        cpu_bench._slots[0][1][3] ^= 1
        far.begin(first + 1)
        far.say({"turn": first + 2})
        far.say({"queued": 2})
        far.say({"launched": [GOOD, GOOD], "end_to_end_us": 1.0})

    session, _, sets = opened(script)
    assert session.launch(sets, hold=False).inputs_kept == [False, True]


def test_outputs_are_what_lies_in_the_outbox(opened, cpu_bench):
    session, reference, sets = opened(lambda far: far.launches(2))
    session.launch(sets, hold=False)
    reference.output_specs[0].view(cpu_bench.outbox(1)).fill_(5)
    (output,) = session.outputs(reference, 1)
    assert torch.equal(output, torch.full((16, 16), 5.0))


@pytest.mark.parametrize("listing", [None, [], "x", 3])
def test_a_profile_that_is_no_listing_breaks_the_protocol(opened, listing):
    def script(far):
        first = far.hear()["first"]
        far.begin(first)
        far.say({"turn": first + 1})
        far.say({"profiled": listing})
        time.sleep(1)

    session, reference, _ = opened(script)
    with pytest.raises(Failed) as caught:
        session.profile(reference.draw())
    assert verdict_of(caught) == PROTOCOL


def test_stopping_kills_the_player(opened):
    session, _, _ = opened(lambda far: None)
    session.stop()
    assert session.child.killed == 1


@pytest.mark.parametrize("script", DEATHS.values(), ids=DEATHS)
def test_a_player_that_dies_while_eager_is_timed_in_it_is_told_so(opened, script):
    session, _, sets = opened(script, death="exited with status 1")
    with pytest.raises(Failed) as caught:
        session.time_reference(sets, hold=False)
    assert verdict_of(caught) == EXITED
    assert caught.value.verdict.reason.startswith("its process exited with status 1 while eager was timed in it")


def test_a_context_that_breaks_while_eager_is_timed_in_it_is_told_so(opened):
    session, _, sets = opened(whole({"broken": {"type": "AcceleratorError", "message": "CUDA error: illegal"}}))
    with pytest.raises(Failed, match="while eager was timed in its process"):
        session.time_reference(sets, hold=False)


def test_an_eager_that_raises_in_the_player_is_left_out_and_the_player_goes_on(opened):
    raised = {"type": "RuntimeError", "message": "patched", "where": "/c/x.py:9"}
    session, _, sets = opened(lambda far: (far.launches(2, report={"raised": raised}), far.launches(2)))
    assert session.time_reference(sets, hold=False) is None
    assert len(session.launch(sets, hold=False).launches) == 2


@pytest.mark.parametrize("answer", [{"compilations": 3}, {"compilations": "3"}, {"compilations": True}, {}])
def test_the_number_of_compilations_is_a_whole_number_or_breaks_the_protocol(opened, answer):
    session, *_ = opened(lambda far: (far.hear(), far.say(answer)))
    if answer == {"compilations": 3}:
        assert session.compilations() == 3
    else:
        with pytest.raises(Failed, match="no number of compilations"):
            session.compilations()
