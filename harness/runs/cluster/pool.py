"""Which problem of a suite has which device of a cluster: each device is one problem's at a time, and of each model a
problem has one.

Ray says of no device that another command has it. What is waited for in vain is therefore given back, for the next that
comes free, and whoever waits longest has that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from harness.runs.cluster.link import Link, Seat

_POLL_S = 1.0


class Lease:
    """The device of one `model` that a problem has at the time, if any."""

    def __init__(self, pool: Pool, model: str | None, stopped: threading.Event) -> None:
        self._pool, self.model, self._stopped = pool, model, stopped
        self.seat: Seat | None = None
        self.is_waiting = True  # for a device, or for another in the place of what it has

    def seats(self, *, is_held: bool = False) -> list[Seat]:
        """Return its device: another where the node of the last is gone, or, if one is free, where another command's run
        `is_held` to have it. Waits for a free one until the problem is stopped; there is none where the cluster has none.
        """
        self.is_waiting = is_held or self.seat is None
        while not self._pool.has_given(self) and self._pool.seats(self.model) and not self._stopped.wait(_POLL_S):
            pass
        return [] if self.seat is None else [self.seat]

    def refuse(self) -> None:
        """Have nobody be given its device any more: it is of no use."""
        self._pool.refused.add(self.seat)

    @property
    def is_alone(self) -> bool:
        """Whether no other problem of the suite judges on this model."""
        return self._pool.at_work(self.model) <= {self}


class OneSeat:
    """As a lease of one device of the cluster, and of no other."""

    is_alone = True

    def __init__(self, link: Link, seat: Seat) -> None:
        self._link, self.seat, self.model = link, seat, seat.model
        self._is_refused = False

    def seats(self, *, is_held: bool = False) -> list[Seat]:
        """Return the device, as long as it is there and of use; held by others, it is waited for."""
        return [self.seat] if not self._is_refused and self.seat in self._link.seats() else []

    def refuse(self) -> None:
        self._is_refused = True


class Pool:
    """The devices of a cluster that the problems of a suite are judged on."""

    def __init__(self, link: Link) -> None:
        self._link, self._lock = link, threading.Lock()
        self._leases: list[Lease] = []  # the first has waited longest
        self.refused: set[Seat | None] = set()
        self.held: set[str | None] = set()  # models that others had for as long as one waits

    def seats(self, *models: str | None) -> list[Seat]:
        """Return the devices that are there and of use, of all models or of these."""
        there = [each for each in self._link.seats() if each not in self.refused]
        return [each for each in there if self.model_of(each) in models] if models else there

    def models(self) -> list[str | None]:
        """Return the models that are there now."""
        return list(dict.fromkeys(map(self.model_of, self.seats())))

    def model_of(self, seat: Seat) -> str | None:
        """Return what Ray calls a GPU; of CPUs all are one model."""
        return seat.model if self._link.kind == "cuda" else None

    @contextmanager
    def lease(self, model: str | None, stopped: threading.Event) -> Iterator[Lease]:
        """Give a problem a device of `model` until the end, once it asks for one."""
        lease = Lease(self, model, stopped)
        with self._lock:
            self._leases.append(lease)
        try:
            yield lease
        finally:
            with self._lock:
                self._leases.remove(lease)

    def at_work(self, model: str | None) -> set[Lease]:
        """Return who has a device of `model`, as far as is known."""
        with self._lock:
            return {each for each in self._leases if each.model == model and not each.is_waiting}

    def has_given(self, lease: Lease) -> bool:
        """Give who waits a device that is free, if its turn has come; return whether it has one."""
        with self._lock:
            there = self.seats(lease.model)
            if lease.seat not in there:
                lease.seat, lease.is_waiting = None, True
            waiting = [each for each in self._leases if each.model == lease.model and each.is_waiting]
            if waiting and waiting[0] is lease:
                taken = {each.seat for each in self._leases}
                free = next((each for each in there if each not in taken), None)
                if free is not None:
                    lease.seat, lease.is_waiting = free, False
            return lease.seat is not None
