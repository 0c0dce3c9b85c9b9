"""Work that waits until a player is busy."""

from __future__ import annotations

import pytest

from harness.timing.deferred_work import Backlog


@pytest.fixture
def waits():
    return []


@pytest.fixture
def backlog(waits):
    return Backlog(lambda: waits.append("synchronize"))


def test_tasks_are_done_in_order_and_once_and_the_device_is_waited_for(backlog, waits):
    done = []
    for number in range(3):
        backlog.add(lambda number=number: done.append(number))
    assert done == []
    backlog.work()
    backlog.work()
    backlog.settle()
    assert done == [0, 1, 2]
    assert waits == ["synchronize"]


def test_an_error_waits_for_settle_and_ends_what_comes_after_it(backlog):
    done = []
    backlog.add(lambda: 1 // 0)
    backlog.add(lambda: done.append("after"))
    backlog.work()
    backlog.add(lambda: done.append("later"))
    with pytest.raises(ZeroDivisionError):
        backlog.settle()
    assert done == []
    backlog.add(lambda: done.append("anew"))
    backlog.settle()
    assert done == ["anew"]


def test_a_task_may_add_another(backlog):
    done = []
    backlog.add(lambda: backlog.add(lambda: done.append("second")))
    backlog.work()
    assert done == []
    backlog.settle()
    assert done == ["second"]
