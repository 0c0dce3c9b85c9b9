"""A queue of the candidate's and one of the reference's, of which the player makes the second while the first runs."""

from __future__ import annotations

import threading

import pytest

from harness.referee.failures import Failed
from harness.verdict import ReasonCode, Status

TIMES = {"A": 11.0, "I": 13.0}


def reports(time_us, count=2):
    each = {"host_us": 5.0, "values": [], "time_us": time_us}
    return {"launched": [dict(each) for _ in range(count)], "end_to_end_us": 12.0}


def turns(far, first, count=2):
    """The turns of a queue whose first is let go once it is known to be full, and its end."""
    far.cool(first)
    for sequence in range(first + 1, first + count):
        far.begin(sequence)
    far.say({"turn": first + count})


@pytest.fixture
def held(opened, monkeypatch):
    """`held(script)`: a session, its device's log of what was asked of it, and sets; queues can be held there."""

    def make(script):
        session, reference, sets = opened(script)
        log = []
        monkeypatch.setattr(session.bench, "kind", "cuda")
        for name in ("let_follow", "take_outputs", "stage"):
            plain = getattr(session.bench, name)

            def watched(*given, name=name, plain=plain):
                log.append((name, given[0]) if name == "let_follow" else name)
                return plain(*given)

            monkeypatch.setattr(session.bench, name, watched)
        return session, log, sets

    return make


def honest(far, heard):
    first, second = far.hear(), far.hear()
    heard += [first, second]
    arms = ["I" if each.get("model") == "reference" else "A" for each in (first, second)]
    far.say({"turn": first["first"]})
    far.say({"queued": 2})
    turns(far, first["first"])
    far.say(reports(TIMES[arms[0]]))
    far.say({"turn": second["first"]})
    far.say({"queued": 2})
    turns(far, second["first"])
    far.say(reports(TIMES[arms[1]]))


@pytest.mark.parametrize("order", ["AI", "IA"])
def test_each_arm_gets_its_own_times_whichever_comes_first(held, order):
    heard, done = [], []
    session, log, sets = held(lambda far: honest(far, heard))
    made, inside = session.launch_both(
        order, sets, sets, lambda: done.append("meanwhile"), lambda: done.append("later")
    )
    assert [launch.time_us for launch in made.launches] == [TIMES["A"]] * 2
    assert [launch.time_us for launch in inside.launches] == [TIMES["I"]] * 2
    assert made.hidden is True and inside.hidden is True and made.inputs_kept == [True, True]
    assert done == ["meanwhile", "later"]
    assert [each["first"] for each in heard] == [1, 4]
    assert [("followed" in each, "behind" in each) for each in heard] == [(True, False), (False, True)]


def test_the_candidates_outputs_are_taken_before_the_queue_behind_has_its_turn(held):
    session, log, sets = held(lambda far: honest(far, []))
    session.launch_both("AI", sets, sets, lambda: None, lambda: log.append("later"))
    assert log == ["stage", "take_outputs", "stage", "later", ("let_follow", 3)]


def test_what_the_candidate_raised_is_its_verdict_though_the_other_queue_ended_well(held):
    def script(far):
        first, second = far.hear(), far.hear()
        far.say({"turn": first["first"]})
        far.say({"queued": 1})
        far.cool(first["first"])
        far.say({"turn": first["first"] + 2})
        far.say({"launched": [{"raised": {"type": "ValueError", "message": "no", "where": []}}], "end_to_end_us": 1.0})
        far.say({"turn": second["first"]})
        far.say({"queued": 2})
        turns(far, second["first"])
        far.say(reports(13.0))

    session, _, sets = held(script)
    with pytest.raises(Failed, match="no") as caught:
        session.launch_both("AI", sets, sets, lambda: None, lambda: None)
    assert caught.value.verdict.reason_code is ReasonCode.RAISED
    assert caught.value.evidence.recipe.seed == sets[0].seed


def test_a_reference_that_cannot_be_run_there_is_no_failure_of_the_candidates(held):
    def script(far):
        first, second = far.hear(), far.hear()
        far.say({"turn": first["first"]})
        far.say({"queued": 2})
        turns(far, first["first"])
        far.say(reports(11.0))
        far.say({"turn": second["first"]})
        far.say({"queued": 2})
        turns(far, second["first"])
        far.say({"launched": [{"raised": {"type": "ValueError", "message": "no", "where": []}}], "end_to_end_us": 1.0})

    session, _, sets = held(script)
    made, inside = session.launch_both("AI", sets, sets, lambda: None, lambda: None)
    assert len(made.launches) == 2 and inside is None


def test_a_candidate_that_waits_inside_forward_behind_the_reference_is_let_go_in_time(held):
    """It can queue nothing ahead, so that not even the report of the queue before it comes meanwhile."""
    let = threading.Event()

    def script(far):
        first, second = far.hear(), far.hear()
        far.say({"turn": first["first"]})
        far.say({"queued": 2})
        turns(far, first["first"])
        far.say({"turn": second["first"]})
        turns(far, second["first"])
        let.set()
        far.say(reports(13.0))
        far.say({"queued": 2})
        far.say(reports(11.0))

    session, _, sets = held(script)
    made, inside = session.launch_both("IA", sets, sets, lambda: None, lambda: None)
    assert let.is_set() and made.hidden is False and inside.hidden is True
    assert [launch.time_us for launch in made.launches] == [11.0] * 2


def test_a_player_that_dies_in_either_queue_is_dead(held):
    def script(far):
        first, _ = far.hear(), far.hear()
        far.say({"turn": first["first"]})
        far.say({"queued": 2})
        turns(far, first["first"])

    session, _, sets = held(script)
    with pytest.raises(Failed) as caught:
        session.launch_both("IA", sets, sets, lambda: None, lambda: None)
    assert caught.value.verdict.status is Status.CRASHED
