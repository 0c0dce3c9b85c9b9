"""Executors of a run on a Ray cluster: an actor beside each device, and what is said to them and heard of them.

A node that joins later is taken within seconds. One with another version of this software is left out, which is told.
A device whose judge was lost is opened again, unless judge after judge is lost there.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness import __version__
from harness.device.identity import DeviceIdentity
from harness.device.lock import LONGEST_WAIT_S
from harness.judge.build_pool import Builds
from harness.judge.run import RunRequest
from harness.model.errors import DeviceBusy
from harness.model.files.text_files import shown
from harness.results.assembly import harness_hash
from harness.runs.cluster.builds import ClusterBuilds
from harness.runs.cluster.link import Link, Seat
from harness.runs.cluster.parcel import text_of
from harness.runs.cluster.pool import Lease, OneSeat
from harness.runs.fleet.device_judge import Assignment, Delivery

_PROGRAM = "harness.runs.fleet.device_judge"
_POLL_S = 5.0  # for nodes that have joined
_HEAR_S = 30.0  # a call that waits for a judge's words ends without any after so long
_BREATH_S = 0.02
_PATIENCE_S = 30.0  # for the end of a judge
_UNTOLD_S = 10.0  # so long a device is waited for without a word
_MOST_LOST = 3  # judges in a row that are lost on a device before it is left alone; each judged nothing


@dataclass
class _Place:
    """A seat with its actor; `heard` is the call that waits for its next words, or for its opening, and None until the next
    is made. `is_again` where a judge was lost there, `since_s` when it was placed.
    """

    seat: Seat
    actor: Any
    heard: Any
    is_again: bool
    since_s: float = field(default_factory=time.monotonic)
    is_open: bool = False


class RayExecutors:
    """The places of one run at the devices of a cluster, or at that of its `lease` alone; use it in a `with`.

    It ends once it is `stopped`. `wait_s` is how long a device is waited for while other jobs of the cluster have them all.
    """

    share_cpu = False

    def __init__(
        self, link: Link, lease: Lease | OneSeat | None = None, program: str = _PROGRAM, wait_s: float | None = None,
        stopped: threading.Event | None = None,
    ) -> None:
        self._link, self._lease, self._program = link, lease, program
        self._wait_s = LONGEST_WAIT_S if wait_s is None else wait_s
        self._stopped = stopped or threading.Event()
        self._places: dict[int, _Place] = {}
        self._labels: dict[int, str] = {}  # of those that are gone too
        self._taken: set[Seat] = set()  # not to be taken again
        self._lost_at: Counter[Seat] = Counter()  # judges in a row
        self._opened_models: set[str | None] = set()
        self._names: dict[int, dict[str, Any]] = {}  # of the files that records speak of, as they are called here
        self._said: deque[tuple[int, tuple[Any, ...]]] = deque()
        self._sent: dict[Any, int] = {}
        self._unheard: set[int] = set()  # places that are to be listened to again
        self._waits_since_s, self._looked_s = time.monotonic(), -math.inf
        self._heard_s = 0.0
        self._has_opened = self._has_told = self._has_given_up = False

    def __enter__(self) -> RayExecutors:
        return self

    def __exit__(self, *_: object) -> None:
        for number in self.open:  # what they are at is nobody's any more
            self.interrupt(number)
        self.end_all(list(self._places))

    @property
    def open(self) -> Collection[int]:
        return [number for number, place in self._places.items() if place.is_open]

    @property
    def expects_more(self) -> bool:
        if self._looked_s == -math.inf or (self.pending and not self.open and not self._has_given_up):
            return True
        until_s = time.monotonic() - self._wait_s
        return any(each.is_again and not each.is_open and each.since_s > until_s for each in self._places.values())

    @property
    def expects_model(self) -> bool:
        models = {each.seat.model for each in self._places.values() if each.is_open}
        return any(each.seat.model not in models for each in self._opening())

    @property
    def expects_another(self) -> bool:
        return bool(self._opening())

    def _opening(self) -> list[_Place]:
        """Those that were placed just now; of an older one others may have the device."""
        since_s = time.monotonic() - _UNTOLD_S
        return [each for each in self._places.values() if not each.is_open and each.since_s > since_s]

    @property
    def pending(self) -> int:
        """How many devices are waited for."""
        return sum(not place.is_open for place in self._places.values())

    @property
    def held_models(self) -> list[str]:
        """Return the models of which other jobs have all devices."""
        models = {place.seat.model for place in self._places.values() if not place.is_open} - self._opened_models
        return sorted(each or "another model" for each in models)

    def label(self, number: int) -> str:
        return self._labels[number]

    def node(self, number: int) -> str:
        """Return Ray's name for the node of a place."""
        return self._places[number].seat.node

    def device_inside(self, number: int) -> str:
        return "cpu" if self._link.kind == "cpu" else "cuda:0"

    def hear(self, timeout_s: float | None) -> Sequence[tuple[int, tuple[Any, ...]]]:
        """Raises DeviceBusy where other jobs have every device for too long, KeyboardInterrupt where it was stopped."""
        import ray

        if self._stopped.is_set():
            raise KeyboardInterrupt

        if time.monotonic() - self._looked_s > _POLL_S:
            self._look()
        for number in self._unheard & self._places.keys():
            self._places[number].heard = self._listen(number)
        self._unheard.clear()
        # What comes within a moment is heard together: looking costs as much for one as for many.
        time.sleep(max(0.0, self._heard_s + _BREATH_S - time.monotonic()))
        calls = {place.heard: number for number, place in self._places.items() if place.heard is not None} | self._sent
        if calls and not self._said:
            wait_s = min(_POLL_S if timeout_s is None else timeout_s, _POLL_S)
            done, left = ray.wait(list(calls), num_returns=len(calls), timeout=0)
            if not done:
                done, _ = ray.wait(left, num_returns=1, timeout=wait_s)
            for call in done:
                self._take(calls[call], call)
        elif not self._said:
            time.sleep(min(_POLL_S if timeout_s is None else timeout_s, 1.0))
        messages, self._said = self._said, deque()
        self._heard_s = time.monotonic()
        return messages

    def send(self, number: int, message: Any) -> None:
        if isinstance(message, (Assignment, Delivery)):
            self._note_names(number, message)
        self._tell(number, *text_of(message))

    def ask(self, number: int, text: str, builds: Sequence[Any]) -> None:
        """Say `text`, a whole job, with `builds`, each with its text and files or as the reference to them. One call does it
        and waits for the answer, where nobody listens yet: for a driver of thousands a call is what costs most.
        """
        if number in self._unheard and number in self._places:
            self._unheard.discard(number)
            call = self._places[number].heard = self._listen(number, text, *builds)
            self._sent[call] = number
        else:
            self._tell(number, text, builds)

    def _tell(self, number: int, text: str, builds: Sequence[Any]) -> None:
        place = self._places.get(number)
        if place is not None:
            call = place.actor.send.options(concurrency_group="told").remote(text, *builds)
            self._sent[call] = number

    def interrupt(self, number: int) -> None:
        self._places[number].actor.interrupt.remote()

    def end(self, number: int) -> None:
        place = self._places.pop(number)
        if place.is_open:  # nobody waits for it: all other devices would
            place.actor.end.remote()
            place.actor.__ray_terminate__.remote()
            if self._lost_at[place.seat] < _MOST_LOST:
                self._lost_at[place.seat] += 1
                self._taken.discard(place.seat)
                self._looked_s = -math.inf

    def end_all(self, numbers: Collection[int]) -> None:
        """End several, side by side."""
        import ray

        places = [self._places.pop(number) for number in numbers]
        ends = [place.actor.end.remote() for place in places if place.is_open]
        ray.wait(ends, num_returns=len(ends), timeout=_PATIENCE_S) if ends else None
        for place in places:
            ray.kill(place.actor)

    def builds(self, request: RunRequest, number: int, device: DeviceIdentity) -> Builds:
        ahead = None if self._link.kind == "cpu" else 64 + 4 * len(self._places)
        builds = ClusterBuilds(
            self._link, request.problem, request.settings, device, self.node(number), request.archs, ahead
        )
        builds.add(request.candidates)
        return builds

    def _look(self) -> None:
        """Place an actor at each device that has none yet."""
        if not self._places:  # before one that is held is given back for another, which is waited for as well
            self._waits_since_s = time.monotonic()
        seats = self._link.seats() if self._lease is None else self._leased()
        for seat in seats:
            if seat not in self._taken:
                self._taken.add(seat)
                actor, number = self._link.place(seat, self._program), len(self._labels)
                self._places[number] = _Place(seat, actor, actor.open.remote(), self._lost_at[seat] > 0)
                self._labels[number] = seat.label
        self._looked_s = time.monotonic()
        if self.open or not self._places:
            self._waits_since_s = self._looked_s
            return
        waited_s = self._looked_s - self._waits_since_s
        if waited_s > _UNTOLD_S and not self._has_told:
            self._has_told = True
            devices = "device is" if len(self._places) == 1 else f"{len(self._places)} devices are"
            self._said.append((-1, ("told", f"the cluster's {devices} held by other jobs: waiting for one")))
        if waited_s > self._wait_s:
            if not self._has_opened:
                raise DeviceBusy(
                    f"other jobs of the cluster have all of its devices after {self._wait_s:g} s. Try again later, or wait "
                    "for longer with --wait SECONDS"
                )
            self._has_given_up = True

    def _leased(self) -> list[Seat]:
        """Return the device of the lease; an actor that waits for another one waits no more."""
        import ray

        since_s = time.monotonic() - _UNTOLD_S
        held = [number for number, place in self._places.items() if not place.is_open and place.since_s < since_s]
        seats = self._lease.seats(is_held=bool(held))
        for number in held:
            if self._places[number].seat not in seats:
                place = self._places.pop(number)
                ray.kill(place.actor)
                self._taken.discard(place.seat)
        return seats

    def _take(self, number: int, call: Any) -> None:
        """Take what a call has come to, and make the next one."""
        import ray

        was_sent = self._sent.pop(call, None) is not None
        place = self._places.get(number)
        try:
            reply = ray.get(call)
        except ray.exceptions.RayError as error:
            if place is not None and was_sent and not isinstance(error, ray.exceptions.RayActorError):
                if place.heard is call:  # a call of its own hears whether the device is there at all
                    place.heard = self._listen(number)
                words = " ".join(str(error).split())[:200]
                self._said.append((number, ("unsent", f"a build was lost with its node ({type(error).__name__}: {words})")))
            elif place is not None:
                self._lost(number, place, error)
            return
        if place is None or place.heard is not call:
            return
        if not place.is_open:
            self._opened(number, place, json.loads(reply))
            return
        for text in reply:
            words = self._mended(number, json.loads(text))
            if words[0] in ("record", "answer"):
                del self._lost_at[place.seat]
            elif words[0] == "failed":  # in words, which a second judge would say again
                self._lost_at[place.seat] = _MOST_LOST
            self._said.append((number, words))
        self._unheard.add(number)

    def _opened(self, number: int, place: _Place, here: dict[str, Any]) -> None:
        if here["hash"] != harness_hash():
            self._said.append((-1, ("fault", (
                f"{place.seat.label} is left out: it has another version of this software ({here['version']}, "
                f"{here['hash']}) than this machine ({__version__}, {harness_hash()}). Install the same one on every node"
            ))))
            if self._lease is not None:
                self._lease.refuse()
                self._looked_s = -math.inf  # for another
            self.end(number)
            return
        place.is_open = self._has_opened = True
        self._opened_models.add(place.seat.model)
        self._has_given_up = False
        self._said.append((number, ("here",)))
        self._unheard.add(number)

    def _listen(self, number: int, *said: Any) -> Any:
        """The call that waits for a place's next words, once it has `said` these."""
        return self._places[number].actor.hear.options(concurrency_group="said").remote(_HEAR_S, *said)

    def _lost(self, number: int, place: _Place, error: Exception) -> None:
        """An actor is gone, or could not be placed. What it had said before is heard before that."""
        words = " ".join(str(error).split())
        how = f"was lost ({type(error).__name__}: {words[:200]})"
        if place.is_open:
            place.heard = None
            self._said.append((number, ("gone", how)))
        else:
            del self._places[number]
            self._said.append((-1, ("fault", f"{place.seat.label} could not be opened: it {how}")))

    def _note_names(self, number: int, message: Assignment | Delivery) -> None:
        names = self._names.setdefault(number, {})
        if isinstance(message, Assignment):
            names["problem"] = shown(message.problem.path)
            own = message.problem.baseline
            names["candidates"] = {} if own is None else {own.name: shown(own.path)}
        else:
            of_them = {each.name: shown(each.path) for each in message.entries.values() if not isinstance(each, str)}
            names["candidates"] = names["candidates"] | of_them

    def _mended(self, number: int, message: Sequence[Any]) -> tuple[Any, ...]:
        """What was said, with the paths by which this machine knows the files that an evidence is about."""
        if message[0] == "record" and message[2].get("evidence"):
            names = self._names[number]
            paths = {"problem": names["problem"], "candidate": names["candidates"].get(message[1]["candidate"])}
            message[2]["evidence"]["paths"] = paths
        return tuple(message)
