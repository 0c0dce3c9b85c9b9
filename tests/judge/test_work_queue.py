"""Who judges what next: every entry once, the control on every device, nothing lost with a device but what it had."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judge.work_queue import Job, WorkQueue

CONTROL = 0


def always(_: int) -> bool:
    return True


def joined(entries: int, judges: int) -> WorkQueue:
    queue = WorkQueue(range(1, entries + 1), CONTROL)
    for judge in range(judges):
        queue.join(judge)
    return queue


def test_every_judge_judges_its_own_control_first_and_hears_already_what_follows():
    queue = joined(6, 2)
    assert queue.next(0, always) == Job(CONTROL, 1)
    assert queue.next(1, always) == Job(CONTROL, 2)
    assert queue.next(0, always) == Job(1, 3)
    assert queue.next(0, always) == Job(3, 4)


def test_the_first_that_is_free_takes_the_next():
    queue = joined(6, 2)
    for judge in (0, 1):
        queue.next(judge, always)
    taken = [queue.next(0, always).entry for _ in range(3)]
    assert taken == [1, 3, 4]
    assert queue.next(1, always).entry == 2


def test_what_was_promised_to_one_that_is_held_up_goes_to_another_that_waits():
    queue = joined(3, 2)
    assert queue.next(0, always, 0.0) == Job(CONTROL, 1)
    assert queue.next(1, always, 0.0) == Job(CONTROL, 2)
    assert queue.next(0, always, 3.0) == Job(1, 3)
    assert queue.next(1, always, 3.0) == Job(2, None)
    assert queue.next(1, always, 8.0) is None and not queue.is_over  # the other will soon be done
    assert queue.next(1, always, 9.5) == Job(3, None)
    assert queue.next(1, always, 12.0) is None and not queue.is_over
    assert queue.next(0, always, 20.0) is None and queue.is_over


def test_what_is_built_first_is_judged_first():
    queue, built = joined(3, 1), {2}
    assert queue.next(0, built.__contains__) == Job(CONTROL, 2)
    assert queue.next(0, built.__contains__) == Job(2, None)
    assert queue.next(0, built.__contains__) is None and not queue.is_over
    built.add(3)
    assert queue.next(0, built.__contains__).entry == 3


def test_a_lost_judge_costs_what_it_had_in_hand_and_gives_back_what_it_was_promised():
    queue = joined(6, 2)
    for judge in (0, 1, 0):
        queue.next(judge, always)
    assert queue.lose(0) == 1
    assert queue.judges == {1}
    judged = [queue.next(1, always).entry for _ in range(5)]
    assert judged == [2, 4, 5, 6, 3]
    assert queue.next(1, always) is None and queue.is_over


def test_what_a_judge_may_have_been_lost_over_comes_last_and_is_promised_to_nobody():
    queue = joined(4, 3)
    assert [queue.next(0, always) for _ in range(2)] == [Job(CONTROL, 1), Job(1, 2)]
    queue.again(queue.lose(0))  # over 1, or over 2, whose worker had begun
    assert [queue.next(1, always) for _ in range(3)] == [Job(CONTROL, 3), Job(3, 4), Job(4)]
    assert queue.next(1, always) == Job(2) and queue.next(2, always) == Job(CONTROL) and queue.next(2, always) == Job(1)
    assert queue.next(1, always) is None and queue.next(2, always) is None and queue.is_over


def test_what_a_judge_is_done_with_is_not_lost_with_it():
    queue = joined(2, 2)
    queue.next(0, always)
    assert queue.next(0, always) == Job(1, 2)
    queue.done(0)
    assert queue.lose(0) is None and queue.left == (2,)


def test_what_did_not_reach_its_judge_is_taken_back_and_a_control_comes_to_it_next():
    queue = joined(2, 1)
    queue.next(0, always)
    assert queue.take_back(0) == (CONTROL, 1)
    queue.again(1)
    assert queue.next(0, always) == Job(CONTROL, 2)
    assert queue.next(0, always) == Job(2)
    assert queue.take_back(0) == (2,) and queue.next(0, always) == Job(1)


def test_a_judge_that_never_came_to_its_control_loses_nothing():
    queue = joined(2, 2)
    assert queue.lose(1) is None
    assert list(queue.left) == [1, 2]


def test_it_is_over_once_all_is_judged_although_a_late_judge_still_times_its_control():
    queue = joined(1, 1)
    queue.next(0, always)
    queue.next(0, always)
    queue.join(1)
    assert queue.next(1, always) == Job(CONTROL, None)
    assert queue.next(0, always) is None
    assert queue.is_over


def test_with_nothing_but_a_control_that_is_judged_once():
    queue = joined(0, 2)
    assert not queue.is_over
    assert queue.next(0, always) == Job(CONTROL, None)
    assert not queue.is_over
    assert queue.next(0, always) is None
    assert queue.is_over


def test_without_a_control_the_entries_alone_are_shared_out():
    queue = WorkQueue([0, 1])
    queue.join(5)
    assert queue.next(5, always) == Job(0, 1)
    assert queue.next(5, always) == Job(1, None)
    assert queue.next(5, always) is None and queue.is_over


@given(
    entries=st.integers(0, 12), judges=st.integers(1, 4), steps=st.lists(st.tuples(st.integers(0, 3), st.booleans())),
)
def test_whoever_is_free_or_lost_whenever_every_entry_is_given_out_once(entries, judges, steps):
    queue, given_out, lost = joined(entries, judges), Counter(), []
    everybody = list(range(judges))
    for judge, is_lost in [*((number % judges, gone) for number, gone in steps), *((0, False),) * (entries + 2)]:
        if judge not in queue.judges:
            continue
        if is_lost and len(queue.judges) > 1 and judge != 0:
            lost.append(queue.lose(judge))
            continue
        job = queue.next(judge, always)
        if job is not None:
            given_out[job.entry] += 1
    for judge in everybody[1:]:
        if judge in queue.judges:
            lost.append(queue.lose(judge))
    while (job := queue.next(0, always)) is not None:
        given_out[job.entry] += 1
    del given_out[CONTROL]
    assert given_out == Counter(range(1, entries + 1))
    assert queue.is_over


@pytest.mark.parametrize("count", [1, 4])
def test_forty_equal_entries_are_shared_out_evenly(count):
    queue = joined(40, count)
    judged: Counter[int] = Counter()
    for _ in range(11 if count == 4 else 41):
        for judge in range(count):
            job = queue.next(judge, always)
            judged[judge] += job is not None and job.entry != CONTROL
    assert set(judged.values()) == {40 // count}


def test_what_is_added_later_comes_after_what_is_left_and_what_can_wait_comes_last():
    queue = WorkQueue([1, 2])
    queue.join(0)
    queue.add([3, 4])
    assert queue.next(0, always, can_wait=lambda entry: entry not in (3, 4), with_following=False) == Job(3)
    assert queue.next(0, always, can_wait=lambda entry: entry != 9, with_following=False) == Job(1)
    assert queue.next(0, lambda entry: entry != 2, with_following=False) == Job(4)
    assert queue.lose(0) == 4 and queue.left == (2,)
