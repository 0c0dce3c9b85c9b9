"""What is ready is judged first, what is slow of itself goes into the gaps, and nothing is judged twice or forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judge.work_queue import WorkQueue


class Builds:
    """Entries that get ready one after the other, in `order`; the first `done` of them are."""

    def __init__(self, order, done=0):
        self.order, self.done, self.waits = order, done, 0

    def is_ready(self, entry):
        return entry not in self.order or self.order.index(entry) < self.done

    def wait(self, entries):
        assert not any(self.is_ready(each) for each in entries)
        self.waits += 1
        while not any(self.is_ready(each) for each in entries):
            self.done += 1


def judged(entries, builds, slow=(), after_each=lambda builds: None):
    pairs = []
    for pair in WorkQueue(entries).alone(builds.is_ready, lambda entry: entry in slow, builds.wait):
        pairs.append(pair)
        after_each(builds)
    return pairs


def order(pairs):
    return [entry for entry, _ in pairs]


def test_what_is_all_built_keeps_its_order_but_the_slow_goes_last():
    pairs = judged(["eager", "compile", "a", "b"], Builds([]), slow={"compile"})
    assert order(pairs) == ["eager", "a", "b", "compile"]
    assert [following for _, following in pairs] == ["a", "b", "compile", None]


def test_the_slow_fills_the_time_until_something_is_built():
    builds = Builds(["a", "b"])
    pairs = judged(["eager", "compile", "a", "b"], builds, slow={"compile"})
    assert order(pairs) == ["eager", "compile", "a", "b"]
    assert builds.waits == 2


def test_what_was_built_first_is_judged_first():
    builds = Builds(["c", "a", "b"])
    assert order(judged(["a", "b", "c"], builds)) == ["c", "a", "b"]


def test_the_slow_gives_way_to_what_was_built_meanwhile():
    builds = Builds(["a"])

    def one_more(builds):
        builds.done += 1

    pairs = judged(["eager", "compile", "a"], builds, slow={"compile"}, after_each=one_more)
    assert pairs[0] == ("eager", "compile")
    assert order(pairs) == ["eager", "a", "compile"]


@given(st.permutations(range(6)), st.integers(0, 6), st.sets(st.integers(0, 8)))
def test_each_is_judged_once_and_none_before_it_is_ready(built, done, slow):
    builds, entries = Builds(list(built), done), list(range(8))
    seen = []
    for entry, following in WorkQueue(entries).alone(builds.is_ready, lambda entry: entry in slow, builds.wait):
        assert builds.is_ready(entry)
        assert following is None or (builds.is_ready(following) and following not in seen and following != entry)
        seen.append(entry)
    assert sorted(seen) == entries


def test_nothing_is_asked_of_no_entries():
    assert judged([], Builds([])) == []
    with pytest.raises(StopIteration):
        next(WorkQueue([]).alone(None, None, None))
