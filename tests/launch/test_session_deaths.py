"""A session whose worker dies or falls silent in forward, at every step."""

from __future__ import annotations

import time

import pytest

from harness.launch.failures import Failed
from harness.model.verdict import ReasonCode, Status

PROTOCOL = (Status.REJECTED, ReasonCode.PROTOCOL)
LAUNCH_TIMEOUT = (Status.TIMED_OUT, ReasonCode.LAUNCH_TIMEOUT)
EXITED = (Status.CRASHED, ReasonCode.EXITED)


def verdict_of(caught):
    return caught.value.verdict.status, caught.value.verdict.reason_code


DEATHS = {
    "before its first turn": lambda far: far.hear(),
    "after its first turn": lambda far: (far.hear(), far.say({"turn": 1}), far.hear()),
    "before it reports": lambda far: [
        far.hear(), far.begin(1), far.begin(2), far.say({"turn": 3}), far.say({"queued": 2}),
    ],
    "in the middle of a frame": lambda far: (far.hear(), far.socket.sendall(b"\x00\x00\x01\x00{")),
}


@pytest.mark.parametrize("script", DEATHS.values(), ids=DEATHS)
def test_a_worker_that_dies_in_forward_has_crashed_whenever_it_does(opened, script):
    session, _, sets = opened(script, death="killed by SIGSEGV")
    with pytest.raises(Failed) as caught:
        session.launch(sets, gate=False)
    assert verdict_of(caught) == (Status.CRASHED, ReasonCode.SIGNAL)
    assert "running forward" in caught.value.verdict.reason


SILENCES = {
    "before its first turn": lambda far: far.hear(),
    "after its first turn": lambda far: (far.hear(), far.say({"turn": 1}), far.hear()),
    "before it reports": lambda far: (far.hear(), far.say({"queued": 2})),
}


@pytest.mark.parametrize("script", SILENCES.values(), ids=SILENCES)
def test_a_worker_that_hangs_in_forward_is_timed_out(opened, script):
    def silent(far):
        script(far)
        far.stay()

    session, _, sets = opened(silent)
    began = time.monotonic()
    with pytest.raises(Failed) as caught:
        session.launch(sets, gate=False)
    assert verdict_of(caught) == LAUNCH_TIMEOUT
    assert "2 calls of forward did not end within 0.6 s" in caught.value.verdict.reason
    assert time.monotonic() - began < 2


def test_a_worker_that_talks_without_end_is_timed_out_too(opened):
    def chatter(far):
        far.hear()
        for _ in range(2000):
            far.say({"queued": 2})
            time.sleep(0.001)

    session, _, sets = opened(chatter)
    with pytest.raises(Failed) as caught:
        session.launch(sets, gate=False)
    assert verdict_of(caught) in (LAUNCH_TIMEOUT, PROTOCOL)


@pytest.mark.parametrize("script", DEATHS.values(), ids=DEATHS)
def test_a_worker_that_dies_while_eager_is_timed_in_it_is_told_so(opened, script):
    session, _, sets = opened(script, death="exited with status 1")
    with pytest.raises(Failed) as caught:
        session.time_reference(sets, gate=False)
    assert verdict_of(caught) == EXITED
    assert caught.value.verdict.reason.startswith("its process exited with status 1 while eager was timed in it")


def test_stopping_kills_the_worker(opened):
    session, _, _ = opened(lambda far: None)
    session.stop()
    assert session.child.killed == 1
