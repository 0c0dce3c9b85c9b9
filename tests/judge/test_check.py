"""Which launches are made before any time is taken, and what a candidate may refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.judge import check as checking
from harness.launch import failures
from harness.launch.conversation import Launch, Launches
from harness.launch.failures import Failed
from harness.model.verdict import ReasonCode, Status


class ScriptedSession:
    """A worker that hands back eager's own outputs, or raises what `raising(sizes, family)` says."""

    def __init__(self, raising=lambda sizes, family: None, beyond=()):
        self._raising, self._reference, self.made, self._beyond = raising, None, [], beyond
        self.queues, self.opened, self.launch_timeout_s = [], [], 1000.0
        self.guarded_from = 1  # the number of the first single call at a size whose guard can say anything

    def make_room(self):
        """There is always room."""

    def open(self, reference, count):
        self._reference, self._alone = reference, 0
        self.opened.append(count)

    def launch(self, sets, *, gate, timeout_s=None):
        self.queues.append(len(sets))
        assert len(sets) <= self.opened[-1]
        self._alone += len(sets) == 1
        for each in sets:
            words = self._raising(self._reference.sizes["M"], each.family.name)
            self.made.append((self._reference.sizes["M"], each.family.name))
            if words is not None:
                raise failures.from_exception(words, "in forward")
        self._sets = sets
        guarded = len(sets) == 1 and self._alone >= self.guarded_from
        beyond = (4, 252) if self._reference.sizes["M"] in self._beyond and guarded else None
        return Launches([Launch(1.0, 1.0, 1.0, None, [], beyond)] * len(sets), 1.0, None, [True] * len(sets))

    def outputs(self, reference, index):
        return reference.eager(self._sets[index])


@pytest.fixture
def check(reference_of):
    """`check(session)`: the refusals found over M = 16 (timed), 8 and 5."""

    def run(session, found=None):
        references = [reference_of(sizes={"M": size}) for size in (16, 8, 5)]
        return checking.check_all(session, references, 3, "fp32", lambda reference: None, 9.0, [] if found is None else found)

    return run


def test_all_families_are_checked_at_all_sizes_and_the_given_one_again_at_the_timed(check):
    session, found = ScriptedSession(), []
    assert check(session, found) == []
    assert len(found) == len(session.made)
    counts = [sum(size == each for size, _ in session.made) for each in (16, 8, 5)]
    assert counts[1] == counts[2] == counts[0] - 2 > 4


def test_the_first_two_calls_at_each_size_are_alone_and_the_others_are_one_queue(check):
    session = ScriptedSession()
    check(session)
    assert session.queues[0::3] == session.queues[1::3] == [1, 1, 1]
    assert session.queues[2::3] == session.opened
    assert sum(session.queues) == len(session.made)


def test_calls_that_half_of_the_limit_would_not_do_for_together_are_made_one_by_one(check):
    session = ScriptedSession()
    session.launch_timeout_s = 1e-6
    check(session)
    assert set(session.queues) == {1}


def test_there_are_no_more_calls_in_a_queue_than_the_device_has_room_for(reference_of):
    session, references = ScriptedSession(), [reference_of(sizes={"M": size}) for size in (16, 8, 5)]
    for reference in references:
        reference.memory = replace(reference.memory, launches=2)
    checking.check_all(session, references, 3, "fp32", lambda reference: None, 9.0, [])
    assert set(session.opened) == {2}
    assert max(session.queues) == 2


@pytest.mark.parametrize("family", ["spread", "one-hot first", "as given"])
def test_a_mistake_within_a_queue_has_the_verdict_figures_and_evidence_of_a_call_by_itself(check, family):
    """Wrong in one family, and only from the third launch of the problem on, so that it is found in the queue."""
    session, found = ScriptedSession(), []
    plain = session.outputs

    def outputs(reference, index):
        wrong = len(session.made) > 2 and session._sets[index].family.name == family
        return [each + wrong * (1 + each.abs().amax()) for each in plain(reference, index)]

    session.outputs = outputs
    with pytest.raises(Failed) as caught:
        check(session, found)
    assert caught.value.verdict.reason_code is ReasonCode.WRONG_VALUES
    recipe = caught.value.evidence.recipe
    assert (recipe.family, recipe.queued, recipe.before) == (family, 1, ())
    assert session.queues[2] > 1 and session.queues[-1] == 1
    assert [each.max_u > 1e6 for each in found] == [*[False] * (len(found) - 1), True]


def test_an_exception_within_a_queue_does_not_hide_the_wrong_output_before_it(check):
    words, found = {"type": "ValueError", "message": "no such family"}, []
    session = ScriptedSession(lambda size, family: words if family == "one-hot first" else None)
    plain = session.outputs
    session.outputs = lambda reference, index: [
        each * (1 + (session._sets[index].family.name == "spread")) for each in plain(reference, index)
    ]
    with pytest.raises(Failed) as caught:
        check(session, found)
    assert caught.value.verdict.reason_code is ReasonCode.WRONG_VALUES
    assert caught.value.evidence.recipe.family == "spread"
    assert len(found) == 3


def test_a_queue_that_fails_where_no_call_of_it_fails_by_itself_has_failed(check):
    session, found = ScriptedSession(), []
    plain = session.outputs
    session.outputs = lambda reference, index: [each + (len(session._sets) > 1) for each in plain(reference, index)]
    with pytest.raises(Failed) as caught:
        check(session, found)
    assert caught.value.verdict.reason_code is ReasonCode.WRONG_VALUES
    assert caught.value.evidence.recipe.queued == session.queues[2] > 1


@pytest.mark.parametrize(("status", "code"), [
    (Status.CRASHED, ReasonCode.CUDA_ERROR), (Status.TIMED_OUT, ReasonCode.LAUNCH_TIMEOUT),
    (Status.REJECTED, ReasonCode.CLOCKS_DISAGREE), (Status.REJECTED, ReasonCode.PROTOCOL),
])
def test_what_ends_a_queue_before_it_is_reported_is_the_verdict_at_once(check, monkeypatch, status, code):
    session = ScriptedSession()
    plain = session.launch

    def launch(sets, **how):
        made = plain(sets, **how)
        if len(sets) > 1:
            raise failures.failed(status, code, "in a queue")
        return made

    session.launch = launch
    with pytest.raises(Failed, match="in a queue"):
        check(session)
    assert session.queues[-1] > 1


def test_the_guard_behind_the_outputs_of_the_second_call_counts_where_the_first_said_nothing(check):
    session = ScriptedSession(beyond=(8,))
    session.guarded_from = 2
    with pytest.raises(Failed, match="writes beyond its output"):
        check(session)


def test_a_size_may_be_refused_in_words_and_the_rest_is_still_checked(check):
    refusal = {"type": "ValueError", "message": "M must be a multiple of 4", "where": "c.py:9"}
    session = ScriptedSession(lambda size, family: refusal if size == 5 else None)
    assert check(session) == ["M=5 (raised ValueError: M must be a multiple of 4 in forward at c.py:9)"]
    assert [size for size, _ in session.made].count(5) == 1
    assert [size for size, _ in session.made].count(8) > 4


@pytest.mark.parametrize("words", [
    {"type": "ValueError", "message": ""},
    {"type": "IndexError", "message": "list index out of range"},
    {"type": "RuntimeError", "message": "CUDA error: an illegal memory access was encountered"},
    {"type": "RuntimeError", "message": "no room", "out_of_memory": True},
])
def test_what_is_no_refusal_in_words_is_a_failure_at_any_size(check, words):
    with pytest.raises(Failed):
        check(ScriptedSession(lambda size, family: words if size == 5 else None))


def test_the_timed_sizes_cannot_be_refused(check):
    words = {"type": "ValueError", "message": "M must be a multiple of 32"}
    with pytest.raises(Failed) as caught:
        check(ScriptedSession(lambda size, family: words if size == 16 else None))
    assert caught.value.verdict.reason_code is ReasonCode.RAISED


def test_a_size_that_ran_once_cannot_be_refused_for_its_values(check):
    words = {"type": "ValueError", "message": "I do not like these numbers"}
    with pytest.raises(Failed):
        check(ScriptedSession(lambda size, family: words if family != "as given" and size == 5 else None))


def test_bytes_behind_the_output_that_change_are_the_kernels_doing(check):
    with pytest.raises(Failed, match=r"writes beyond its output: 4 of the 252 bytes behind its end .* \(M=8\)") as caught:
        check(ScriptedSession(beyond=(8,)))
    assert caught.value.verdict.reason_code is ReasonCode.MEMORY_ERROR
