"""Work that waits until a worker is busy."""

from __future__ import annotations

import pytest

from harness.timing.deferred_work import DeferredWork


@pytest.fixture
def waits():
    return []


@pytest.fixture
def deferred_work(waits):
    return DeferredWork(lambda: waits.append("synchronize"))


def test_tasks_are_done_in_order_and_once_and_the_device_is_waited_for(deferred_work, waits):
    done = []
    for number in range(3):
        deferred_work.add(lambda number=number: done.append(number))
    assert done == []
    deferred_work.work()
    deferred_work.work()
    deferred_work.settle()
    assert done == [0, 1, 2]
    assert waits == ["synchronize"]


def test_an_error_waits_for_settle_and_ends_what_comes_after_it(deferred_work):
    done = []
    deferred_work.add(lambda: 1 // 0)
    deferred_work.add(lambda: done.append("after"))
    deferred_work.work()
    deferred_work.add(lambda: done.append("later"))
    with pytest.raises(ZeroDivisionError):
        deferred_work.settle()
    assert done == []
    deferred_work.add(lambda: done.append("anew"))
    deferred_work.settle()
    assert done == ["anew"]


def test_a_task_may_add_another(deferred_work):
    done = []
    deferred_work.add(lambda: deferred_work.add(lambda: done.append("second")))
    deferred_work.work()
    assert done == []
    deferred_work.settle()
    assert done == ["second"]
