"""What a referee of several does while its parent has nothing for it: other runs may have its device."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from harness.fleet import referee
from harness.fleet.sharing import Job


class Pipe:
    """A parent that sends `deliveries`, each at once or after a while."""

    def __init__(self, *deliveries):
        self._deliveries = list(deliveries)

    def send(self, what):
        """Heard by nobody."""

    def poll(self, timeout_s):
        return self._deliveries[0][0]

    def recv(self):
        return self._deliveries.pop(0)[1]


class Contest:
    lost = None

    def __init__(self):
        self.done = []

    @contextmanager
    def idle(self):
        self.done.append("lent")
        yield
        self.done.append("taken again")


class Builds:
    def take(self, delivery):
        """None are looked at."""


def delivery(entry):
    return referee.Delivery(Job(entry), {}, True)


@pytest.mark.parametrize(("deliveries", "done"), [
    ([(True, delivery(0)), (True, None)], []),
    ([(False, delivery(0)), (True, None)], ["lent", "taken again"]),
    ([(True, delivery(0)), (False, None)], ["lent"]),
])
def test_the_device_is_lent_while_nothing_comes_and_not_taken_again_to_end(deliveries, done):
    contest = Contest()
    judged = list(referee._asked_for(Pipe(*deliveries), ["entry"], Builds(), contest))
    assert judged == [("entry", None)] and contest.done == done
