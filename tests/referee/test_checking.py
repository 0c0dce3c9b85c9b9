"""Which launches are made before any time is taken, and what a candidate may refuse."""

from __future__ import annotations

import pytest

from harness.referee import checking, failures
from harness.referee.failures import Failed
from harness.referee.turns import Launch, Launches
from harness.verdict import ReasonCode


class ScriptedSession:
    """A player that hands back eager's own outputs, or raises what `raising(sizes, family)` says."""

    def __init__(self, raising=lambda sizes, family: None, beyond=()):
        self._raising, self._reference, self.made, self._beyond = raising, None, [], beyond

    def open(self, reference, count):
        self._reference = reference

    def launch(self, sets, *, hold, timeout_s=None):
        family = sets[0].family.name
        words = self._raising(self._reference.sizes["M"], family)
        self.made.append((self._reference.sizes["M"], family))
        if words is not None:
            raise failures.from_exception(words, "in forward")
        self._sets = sets
        beyond = (4, 252) if self._reference.sizes["M"] in self._beyond else None
        return Launches([Launch(1.0, 1.0, 1.0, None, [], beyond)], 1.0, None, [True])

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
