"""A session before its worker is loaded: state beside the reference's, and workers that die, hang or talk nonsense."""

from __future__ import annotations

import re
import time

import pytest

from harness.launch.failures import Failed, Unbuilt
from harness.model.problem import AccuracyRule
from harness.model.verdict import ReasonCode, Status

PROTOCOL = (Status.REJECTED, ReasonCode.PROTOCOL)
LOAD_TIMEOUT = (Status.TIMED_OUT, ReasonCode.LOAD_TIMEOUT)
EXITED = (Status.CRASHED, ReasonCode.EXITED)


def verdict_of(caught):
    return caught.value.verdict.status, caught.value.verdict.reason_code


def test_state_that_matches_the_reference_is_no_difference(session_with, reference_of):
    session = session_with(lambda far: far.load())
    assert session.load("/x.py", reference_of(), {}, 1) is None


CALL = {"kind": "load_inline", "arguments": {"name": "late"}, "texts": {}}


@pytest.mark.parametrize("reply", [
    {"loaded": True, "state": {}, "alike": True, "unbuilt": [CALL]},
    {"raised": {"type": "NotBuilt", "message": "load_inline(name='late')"}, "unbuilt": [CALL]},
])
def test_what_it_asks_for_as_it_is_loaded_is_handed_on_where_it_may_ask(session_with, reference_of, reply):
    with pytest.raises(Unbuilt) as caught:
        session_with(lambda far: far.load(reply)).load("/x.py", reference_of(), {}, 1, may_ask=True)
    assert caught.value.calls == [CALL]


def test_what_it_asks_for_at_a_launch_is_handed_on_too(session_with, reference_of):
    def script(far):
        far.make_ready()
        first = far.hear()["first"]
        far.begin(first)
        far.say({"turn": first + 1})
        far.say({"queued": 1})
        far.say({"launched": [{"raised": {"type": "NotBuilt", "message": "not yet"}}], "end_to_end_us": 1.0, "unbuilt": [CALL]})

    session, reference = session_with(script), reference_of()
    session.load("/x.py", reference, {}, 1, may_ask=True)
    session.open(reference, 1)
    with pytest.raises(Unbuilt) as caught:
        session.launch([reference.draw()], gate=False)
    assert caught.value.calls == [CALL]


def test_where_it_may_not_ask_what_it_says_of_that_is_not_heard(session_with, reference_of):
    session = session_with(lambda far: far.load({"loaded": True, "state": {}, "alike": True, "unbuilt": "anything"}))
    assert session.load("/x.py", reference_of(), {}, 1) is None


def test_asking_in_words_that_no_worker_of_ours_has_breaks_the_protocol(session_with, reference_of):
    session = session_with(lambda far: far.load({"loaded": True, "state": {}, "alike": True, "unbuilt": ["rm -r /"]}))
    with pytest.raises(Failed) as caught:
        session.load("/x.py", reference_of(), {}, 1, may_ask=True)
    assert verdict_of(caught) == PROTOCOL


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
    assert re.search(said, session.load("/x.py", reference_of(LINEAR, {}, accuracy=AccuracyRule()), {}, 1))


@pytest.mark.parametrize("digests", [{}, "nonsense", {"linear.weight": "0", "linear.bias": None}, {"linear.weight": [1]}])
def test_parameters_of_the_right_form_and_other_values_differ_too(session_with, reference_of, digests):
    state = {"linear.weight": ["float32", [2, 3]], "linear.bias": ["float32", [2]]}
    session = session_with(lambda far: far.load({"loaded": True, "state": state, "alike": True, "digests": digests}))
    assert "other values" in session.load("/x.py", reference_of(LINEAR, {}, accuracy=AccuracyRule()), {}, 1)


def test_a_state_of_the_same_digests_is_the_references(session_with, reference_of):
    reference = reference_of(LINEAR, {}, accuracy=AccuracyRule())
    state = {"linear.weight": ["float32", [2, 3]], "linear.bias": ["float32", [2]]}
    reply = {"loaded": True, "state": state, "alike": True, "digests": reference.state_digests}
    assert session_with(lambda far: far.load(reply)).load("/x.py", reference, {}, 1) is None


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
def test_a_worker_that_dies_before_it_is_loaded_has_crashed(session_with, reference_of, script, how, verdict):
    with pytest.raises(Failed) as caught:
        session_with(script, **how, said="warning\nlast words\n").load("/x.py", reference_of(), {}, 1)
    assert verdict_of(caught) == verdict
    assert how["death"] in caught.value.verdict.reason
    assert "last words" in caught.value.verdict.reason


@pytest.mark.parametrize("script", BEFORE_LOADING.values(), ids=BEFORE_LOADING)
def test_a_worker_that_falls_silent_before_it_is_loaded_is_timed_out(session_with, reference_of, script):
    def silent(far):
        script(far)
        far.stay()

    began = time.monotonic()
    with pytest.raises(Failed) as caught:
        session_with(silent).load("/x.py", reference_of(), {}, 1)
    assert verdict_of(caught) == LOAD_TIMEOUT
    assert "0.6 s" in caught.value.verdict.reason
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("body", [b"garbage", b"[]", b'"ok"', b"\xff"])
def test_a_worker_that_answers_nonsense_breaks_the_protocol(session_with, reference_of, body):
    def script(far):
        far.greet()
        far.hear()
        far.raw(body)
        far.stay()

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
