"""The cache is made cold by the worker, and the judge looks whether it was before it opens the timed window."""

from __future__ import annotations

import time

import pytest

from harness.launch.failures import Failed
from harness.model.verdict import ReasonCode, Status

PROTOCOL = (Status.REJECTED, ReasonCode.PROTOCOL)
GOOD = {"host_us": 1.0, "values": [], "time_us": 10.0}


def verdict_of(caught):
    return caught.value.verdict.status, caught.value.verdict.reason_code


def leaves_it_out(far, first):
    far.say({"turn": first})
    far.hear()
    far.say({"turn": first + 1})


def only_says_so(far, first):
    far.say({"turn": first})
    far.hear()
    far.say({"flushed": first})


def writes_the_last_word_again(far, first):
    far.say({"turn": first})
    far.backend._cache_flush.run(far.hear()["word"] - 1)
    far.say({"flushed": first})


def writes_ninety_nine_of_a_hundred(far, first):
    far.say({"turn": first})
    words = far.backend._cache_flush._words
    words[: words.numel() * 99 // 100].fill_(far.hear()["word"])
    far.say({"flushed": first})


@pytest.mark.parametrize(
    "deed", [leaves_it_out, only_says_so, writes_the_last_word_again, writes_ninety_nine_of_a_hundred]
)
def test_a_cache_that_was_not_made_cold_is_seen_before_the_window_opens(opened, cpu_backend, deed):
    def script(far):
        deed(far, far.hear()["first"])
        far.stay()

    session, _, sets = opened(script)
    with pytest.raises(Failed, match="was not made cold before its timed window") as caught:
        session.launch(sets, gate=False)
    assert verdict_of(caught) == (Status.REJECTED, ReasonCode.CLOCKS_DISAGREE)


def test_a_queue_that_is_said_to_be_cut_short_is_not_believed_whole_and_unflushed(opened):
    def script(far):
        first = far.hear()["first"]
        far.say({"queued": 1})
        far.say({"turn": first})
        far.hear()
        far.say({"turn": first + 1})
        far.hear()
        far.say({"turn": first + 2})
        far.say({"launched": [GOOD, GOOD], "end_to_end_us": 1.0})

    session, _, sets = opened(script)
    with pytest.raises(Failed, match="cut short is reported whole") as caught:
        session.launch(sets[:2], gate=False)
    assert verdict_of(caught) == PROTOCOL


@pytest.mark.parametrize("numbers", [(2,), (0,), (1, 1)], ids=["ahead", "behind", "twice"])
def test_a_flush_of_another_launch_breaks_the_protocol(opened, numbers):
    def script(far):
        far.hear()
        far.say({"turn": 1})
        far.backend._cache_flush.run(far.hear()["word"])
        for number in numbers:
            far.say({"flushed": number})
        far.stay()

    session, _, sets = opened(script)
    with pytest.raises(Failed) as caught:
        session.launch(sets, gate=False)
    assert verdict_of(caught) == PROTOCOL


def test_the_window_opens_when_the_cache_is_cold_and_where_inputs_lie_early_that_much_later(opened, cpu_backend):
    seen = []

    def script(far):
        for _ in range(4):
            first = far.hear()["first"]
            far.say({"turn": first})
            answer = far.hear()
            before = cpu_backend._flags.window
            cpu_backend._cache_flush.run(answer["word"])
            far.say({"flushed": first})
            began = time.monotonic()
            while cpu_backend._flags.window < first:
                time.sleep(0.001)
            seen.append((before < first, time.monotonic() - began))
            far.say({"turn": first + 1})
            far.say({"queued": 1})
            far.say({"launched": [GOOD], "end_to_end_us": 1.0})

    session, _, sets = opened(script)
    for early_s in (0.0, 0.0, 0.0, 0.1):
        session.launch(sets[:1], gate=False, early_s=early_s)
    assert all(closed for closed, _ in seen)
    *usual_s, opened_s = (seconds for _, seconds in seen)
    assert min(usual_s) < 0.09 < opened_s, "a busy machine may be late once"
