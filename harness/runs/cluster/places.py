"""Places of a run on a Ray cluster: an actor beside each device, and what is said to them and heard of them.

A node that joins later is found within seconds. One that is lost, or has another version of this software, is told of.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
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
from harness.runs.cluster.messages import text_of
from harness.runs.fleet.device_judge import Assignment, Delivery

_PROGRAM = "harness.runs.fleet.device_judge"
_POLL_S = 5.0  # for nodes that have joined
_HEAR_S = 30.0  # a call that waits for a judge's words ends without any after so long
_BREATH_S = 0.02
_PATIENCE_S = 30.0  # for the end of a judge
_UNTOLD_S = 10.0  # so long a device is waited for without a word


@dataclass
class _Place:
    """A seat with its actor; `heard` is the call that waits for its next words, or for its opening."""

    seat: Seat
    actor: Any
    heard: Any
    is_open: bool = False


class RayPlaces:
    """The places of one run at the devices of a cluster, or at those `seats` of it; use it in a `with`.

    It ends once it is `stopped`. `wait_s` is how long a first device is waited for while other jobs of the cluster have them all.
    """

    share_cpu = False

    def __init__(
        self, link: Link, seats: Sequence[Seat] | None = None, program: str = _PROGRAM, wait_s: float | None = None,
        stopped: threading.Event | None = None,
    ) -> None:
        self._link, self._seats, self._program = link, seats, program
        self._wait_s = LONGEST_WAIT_S if wait_s is None else wait_s
        self._stopped = stopped or threading.Event()
        self._places: dict[int, _Place] = {}
        self._labels: dict[int, str] = {}  # of those that are gone too
        self._taken: set[Seat] = set()  # once, whatever became of it
        self._names: dict[int, dict[str, Any]] = {}  # of the files that records speak of, as they are called here
        self._said: deque[tuple[int, tuple[Any, ...]]] = deque()
        self._sent: dict[Any, int] = {}
        self._began_s, self._looked_s = time.monotonic(), 0.0
        self._heard_s = 0.0
        self._has_opened = self._has_told = False

    def __enter__(self) -> RayPlaces:
        return self

    def __exit__(self, *_: object) -> None:
        import ray

        for place in self._places.values():
            ray.kill(place.actor)
        self._places.clear()

    @property
    def open(self) -> Collection[int]:
        return [number for number, place in self._places.items() if place.is_open]

    @property
    def expects_more(self) -> bool:
        return not self._has_opened and (self._looked_s == 0.0 or bool(self._places))

    @property
    def pending(self) -> int:
        """How many devices are waited for."""
        return sum(not place.is_open for place in self._places.values())

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
        said, self._said = self._said, deque()
        self._heard_s = time.monotonic()
        return said

    def send(self, number: int, said: Any) -> None:
        if isinstance(said, (Assignment, Delivery)):
            self._note_names(number, said)
        text, builds = text_of(said)
        self.send_text(number, text, builds)

    def send_text(self, number: int, text: str, builds: Sequence[tuple[Any, Any]]) -> None:
        """Say `text`, with the texts and files of `builds`."""
        place = self._places.get(number)
        if place is not None:
            flat = [each for build in builds for each in build]
            call = place.actor.send.options(concurrency_group="told").remote(text, *flat)
            self._sent[call] = number

    def interrupt(self, number: int) -> None:
        self._places[number].actor.interrupt.remote()

    def end(self, number: int) -> None:
        self.end_all([number])

    def end_all(self, numbers: Collection[int]) -> None:
        """End several, side by side."""
        import ray

        places = [self._places.pop(number) for number in numbers]
        ends = [place.actor.end.remote() for place in places if place.is_open]
        ray.wait(ends, num_returns=len(ends), timeout=_PATIENCE_S) if ends else None
        for place in places:
            ray.kill(place.actor)

    def builds(self, request: RunRequest, device: DeviceIdentity) -> Builds:
        node = self.node(next(iter(self.open)))
        ahead = None if self._link.kind == "cpu" else 64 + 4 * len(self._places)
        builds = ClusterBuilds(self._link, request.problem, request.settings, device, node, request.archs, ahead)
        builds.add(request.candidates)
        return builds

    def _look(self) -> None:
        """Place an actor at each device that has none yet."""
        self._looked_s = time.monotonic()
        for seat in self._link.seats() if self._seats is None else self._seats:
            if seat not in self._taken:
                self._taken.add(seat)
                actor, number = self._link.place(seat, self._program), len(self._labels)
                self._places[number], self._labels[number] = _Place(seat, actor, actor.open.remote()), seat.label
        waited_s = time.monotonic() - self._began_s
        if self._has_opened or not self._places:
            return
        if waited_s > _UNTOLD_S and not self._has_told:
            self._has_told = True
            devices = "GPU is" if len(self._places) == 1 else f"{len(self._places)} GPUs are"
            self._said.append((-1, ("told", f"the cluster's {devices} held by other jobs: waiting for one")))
        if waited_s > self._wait_s:
            raise DeviceBusy(
                f"other jobs of the cluster have all of its devices after {self._wait_s:g} s. Try again later, or wait for "
                "longer with --wait SECONDS"
            )

    def _take(self, number: int, call: Any) -> None:
        """Take what a call has come to, and make the next one."""
        import ray

        was_sent = self._sent.pop(call, None) is not None
        place = self._places.get(number)
        try:
            said = ray.get(call)
        except ray.exceptions.RayError as error:
            if place is not None:
                self._lost(number, place, error)
            return
        if was_sent or place is None:
            return
        if not place.is_open:
            self._opened(number, place, json.loads(said))
            return
        for text in said:
            self._said.append((number, self._mended(number, json.loads(text))))
        self._listen(place)

    def _opened(self, number: int, place: _Place, here: dict[str, Any]) -> None:
        if here["hash"] != harness_hash():
            self._said.append((-1, ("fault", (
                f"{place.seat.label} is left out: it has another version of this software ({here['version']}, "
                f"{here['hash']}) than this machine ({__version__}, {harness_hash()}). Install the same one on every node"
            ))))
            self.end(number)
            return
        place.is_open = self._has_opened = True
        self._said.append((number, ("here",)))
        self._listen(place)

    def _listen(self, place: _Place) -> None:
        place.heard = place.actor.hear.options(concurrency_group="said").remote(_HEAR_S)

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

    def _note_names(self, number: int, said: Assignment | Delivery) -> None:
        names = self._names.setdefault(number, {})
        if isinstance(said, Assignment):
            names["problem"] = shown(said.problem.path)
            own = said.problem.baseline
            names["candidates"] = {} if own is None else {own.name: shown(own.path)}
        else:
            of_them = {each.name: shown(each.path) for each in said.entries.values() if not isinstance(each, str)}
            names["candidates"] = names["candidates"] | of_them

    def _mended(self, number: int, said: Sequence[Any]) -> tuple[Any, ...]:
        """What was said, with the paths by which this machine knows the files that an evidence is about."""
        if said[0] == "record" and said[2].get("evidence"):
            names = self._names[number]
            paths = {"problem": names["problem"], "candidate": names["candidates"].get(said[1]["candidate"])}
            said[2]["evidence"]["paths"] = paths
        return tuple(said)
