"""A run on several devices: starts a judge on each, builds once, shares out the entries, gathers the records. Devices
of one model, with one PyTorch and CUDA, are one team, with one file of results and one table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from harness.build.cache import Cache
from harness.device.identity import DeviceIdentity
from harness.device.lock import DeviceLock
from harness.judge.build_pool import Builds, queue_for, sound_of, toolchain_for
from harness.judge.run import RunRequest, RunResult, note_no_sandbox, run as run_on_one
from harness.model.errors import DeviceBusy, HarnessError, InputError
from harness.report.progress import Progress, name_on
from harness.results.record import Record
from harness.results.writer import utc_now
from harness.runs.fleet.device_judge import Assignment
from harness.runs.fleet.judge_process import JudgeProcess, error_of, started
from harness.runs.fleet.team import Team, unlike
from harness.sandbox.sandbox_choice import strongest_sandbox

if TYPE_CHECKING:
    from harness.runs.cluster.ray_executors import RayExecutors

_POLL_S = 0.05  # for builds that have become ready


def run(request: RunRequest, devices: Sequence[str], progress: Progress) -> list[RunResult]:
    """Judge everything that `request` names on `devices`; a result for each model among them. Raises HarnessError for
    what is the user's or the machine's fault.
    """
    if len(devices) == 1:
        return [run_on_one(replace(request, device=devices[0]), progress)]
    if request.archs and any(each != "cpu" for each in devices):
        raise InputError("--arch is for compiling without a GPU, and this run has one", hint="Add --device cpu")
    with ExitStack() as stack:
        judges = stack.enter_context(started(devices))
        progress.note(f"opening {len(judges)} devices, a judge on each")
        return Fleet(request, LocalExecutors(judges), progress, stack).run()


class LocalExecutors:
    """Where a run's judges are, in processes of this machine; `RayExecutors` stand in their place on others.

    A run knows them by numbers. What it says to one is an `Assignment`, then a `Delivery` for each entry, "quiet" where
    it asked for that, and None at the end; what it hears are tuples whose first word says what they are. They
    `share_cpu` where every "cpu" among them is this machine's. `expects_more` says whether one is on its way without
    which the run could not begin or go on, `expects_model` whether the first of some model is, `expects_another` whether
    any is.
    """

    share_cpu = True
    expects_more = expects_model = expects_another = False

    def __init__(self, judges: Sequence[JudgeProcess]) -> None:
        self._judges = dict(enumerate(judges))
        names = [each.device for each in judges]
        is_clear = len(set(names)) == len(names)
        self._labels = {number: name if is_clear else f"{name}#{number}" for number, name in enumerate(names)}
        self._new = deque(self._judges)

    @property
    def open(self) -> Collection[int]:
        """The numbers of those that can be spoken to."""
        return self._judges.keys()

    def label(self, number: int) -> str:
        """Return what the place is called in what is told of it: its device, with a number if that was named twice."""
        return self._labels[number]

    def device_inside(self, number: int) -> str:
        """Return what the judge there calls its device: "cpu" or "cuda:0"."""
        return self._judges[number].device_inside

    def hear(self, timeout_s: float | None) -> Sequence[tuple[int, tuple[Any, ...]]]:
        """Return what was said since, waiting for it up to `timeout_s`. The first of a place is ("here",), the last of
        one that ended ("gone", how). Where a `Delivery` did not arrive with its builds, ("unsent", why). Of number -1,
        for the user, are ("told", text), and ("fault", text) of what could not be used.
        """
        if self._new:
            return [(self._new.popleft(), ("here",))]
        pipes = {judge.pipe: number for number, judge in self._judges.items()}
        return [(pipes[pipe], self._said(pipes[pipe])) for pipe in wait(list(pipes), timeout_s)]

    def _said(self, number: int) -> tuple[Any, ...]:
        try:
            return self._judges[number].pipe.recv()
        except (EOFError, OSError):
            return "gone", self._judges[number].how_it_ended()

    def send(self, number: int, message: Any) -> None:
        """Say something to one; nothing happens where it has ended, which is heard next."""
        with suppress(OSError):
            self._judges[number].pipe.send(message)

    def interrupt(self, number: int) -> None:
        """Have it put its workers away and end, whatever it is doing."""
        self._judges[number].interrupt()

    def end(self, number: int) -> None:
        """Wait some seconds for its end, then make one; it is `open` no more."""
        self._judges.pop(number).end()

    def end_all(self, numbers: Collection[int]) -> None:
        for number in numbers:
            self.end(number)

    def builds(self, request: RunRequest, number: int, device: DeviceIdentity) -> Builds:
        """Return the builds of the candidates for devices like that of the place `number`, which are begun at once."""
        sound, toolchain = sound_of(request.problem, request.candidates), toolchain_for(device.sm, request.archs)
        return queue_for(request.problem, sound, toolchain, request.settings, device, Cache(), strongest_sandbox())


class Fleet:
    """The parent of one run's judges, which are at `places` and known by their numbers there."""

    def __init__(
        self, request: RunRequest, places: LocalExecutors | RayExecutors, progress: Progress, stack: ExitStack
    ) -> None:
        self._request, self._places, self._progress, self._stack = request, places, progress, stack
        self._utc = utc_now()
        self._teams: dict[Hashable, Team] = {}
        self._builds: list[Builds] = []
        self._judged = self._of = 0  # candidates, each by each model
        self._devices: list[DeviceIdentity] = []
        self._team_of: dict[int, Team] = {}
        self._waiting: dict[int, str | None] = {}  # who asked for an entry, and why it is lost, if it is
        self._until_quiet: set[int] = set()  # who waits for the compilers to end
        self._doubting: set[int] = set()  # who doubts a clock, until it has the record: no build begins meanwhile
        # All judges on the CPU share its one lock, which is taken once the first is about to time there.
        self._turn: DeviceLock | None = DeviceLock(None, "this CPU", progress, wait_s=request.wait_s)
        self._faults: list[HarnessError] = []

    def run(self) -> list[RunResult]:
        """Judge everything; a result for each model. Raises HarnessError where nothing was judged."""
        places = self._places
        if places.share_cpu:
            note_no_sandbox(self._progress)
        while (places.open or places.expects_more) and not self._all_is_judged():
            for number, message in places.hear(_POLL_S if self._waiting or self._until_quiet else None):
                self._take(number, *message)
            for number in list(self._waiting):
                self._answer(number)
            self._answer_until_quiet()
            self._tell_overall()
        self._dismiss_all()
        teams = [team for team in self._teams.values() if team.has_judged or not self._faults]
        if not teams and self._faults:
            raise self._faults[0]
        for team in teams:
            team.give_up(self._faults)
        return [team.finish(self._progress) for team in teams]

    def _tell_overall(self) -> None:
        devices = sum(len(team.judges) for team in self._teams.values())
        self._progress.overall(
            judged=self._judged, of=self._of, at_work=devices - len(self._waiting),
            devices=devices, builds=sum(each.waiting for each in self._builds),
        )

    def _done(self, record: Record, label: str) -> None:
        self._judged += record.role == "candidate"
        self._progress.done(record, label)

    def _all_is_judged(self) -> bool:
        # A model's only device may still be on its way.
        joined = self._team_of.keys() >= set(self._places.open) and not self._places.expects_model
        if self._request.kept and self._places.expects_another:
            return False  # where all have been kept, a device on its way may be of another PyTorch, of which none was
        more, teams = self._places.expects_more, self._teams.values()  # whoever has lost its devices may have one again
        return joined and bool(teams) and all(team.is_over or not (team.judges or more) for team in teams)

    def _take(self, number: int, kind: str, *payload: Any) -> None:
        if kind in ("told", "fault"):
            self._progress.note(payload[0])
            self._faults += [HarnessError(payload[0])] if kind == "fault" else []
            return
        if number not in self._places.open:
            return  # what it said before it was given up
        label = self._places.label(number)
        if kind in ("record", "free"):
            self._doubting.discard(number)
        if kind == "here":
            asked, device, has_lock = self._request, self._places.device_inside(number), self._has_lock(number)
            self._places.send(number, Assignment(
                asked.problem, asked.settings, device, self._utc, asked.command, asked.sanitize, asked.archs,
                asked.extras, asked.wait_s, has_lock, is_remote=not self._places.share_cpu,
            ))
        elif kind == "gone":
            self._lose(number, HarnessError(f"the judge on {label} {payload[0]}"))
        elif kind == "device":
            self._join(number, DeviceIdentity(**payload[0]))
        elif kind == "stage":
            self._progress.status(name_on(label, payload[0]), payload[1])
        elif kind == "note":
            self._progress.note(f"{label}: {payload[0]}")
        elif kind == "record":
            record = Record(**payload[0])
            if trouble := self._team_of[number].add(number, record, payload[1]):
                self._progress.note(trouble)
            self._done(record, label)
        elif kind == "free":
            self._waiting[number] = payload[0]
        elif kind == "until quiet":
            self._until_quiet.add(number)
            if payload[0]:
                self._doubting.add(number)
        elif kind == "unsent":
            for record in self._team_of[number].unsent(number, payload[0]):
                self._done(record, label)
            self._waiting[number] = None
        else:
            self._lose(number, error_of(*payload))

    def _join(self, number: int, device: DeviceIdentity) -> None:
        key, difference = device.team, unlike(device, self._devices)
        if difference is not None:
            where = "each row names its driver" if key in self._teams else "its rows have a table of their own"
            self._progress.note(f"{self._places.label(number)} has {difference}: {where}")
        self._devices.append(device)
        if key not in self._teams:
            left = self._request.left_for(device)
            self._of += len(left.candidates)
            builds = self._places.builds(left, number, device)
            self._builds.append(builds)
            self._teams[key] = self._stack.enter_context(Team(left, device, self._utc, builds))
        team = self._team_of[number] = self._teams[key]
        team.join(number, device)

    def _answer(self, number: int) -> None:
        """Give a judge that waits its next entry, as soon as one is ready."""
        lost = self._waiting[number]
        if lost:
            self._lose(number, HarnessError(f"{self._places.label(number)} judges nothing more: {lost}"))
        elif (delivery := self._team_of[number].next(number)) is not None:
            del self._waiting[number]
            self._places.send(number, delivery)

    def _answer_until_quiet(self) -> None:
        """Tell who waits for it that no compiler runs, for a device of another model either: they share the cores."""
        for team in self._teams.values():
            team.pause(bool(self._doubting))
        if not all(team.is_quiet for team in self._teams.values()):
            return
        # Who waits for the end of all builds is told nothing while they only pause.
        told = self._until_quiet & self._doubting if self._doubting else set(self._until_quiet)
        if any(self._has_lock(number) for number in told):
            self._hold_cpu()
        for number in told & self._until_quiet:  # of those some are lost where the CPU does not come free
            self._places.send(number, "quiet")
        self._until_quiet -= told

    def _has_lock(self, number: int) -> bool:
        """Return whether this process has the lock of that device: of the CPU, where all would share the one."""
        return self._places.share_cpu and self._places.device_inside(number) == "cpu"

    def _hold_cpu(self) -> None:
        """Wait for the CPU, unless it is held already; whoever would time on it is lost where it does not come free."""
        turn, self._turn = self._turn, None
        if turn is None:
            return
        try:
            self._stack.enter_context(turn.held())
        except DeviceBusy as fault:
            for number in [number for number in self._places.open if self._has_lock(number)]:
                self._lose(number, fault)

    def _lose(self, number: int, fault: HarnessError) -> None:
        """A device less: what it had in hand is judged again elsewhere, once, and nothing else is lost."""
        self._waiting.pop(number, None)
        self._until_quiet.discard(number)
        self._doubting.discard(number)
        self._places.end(number)
        self._progress.clear(self._places.label(number))
        team = self._team_of.get(number)
        record = team.lose(number, str(fault)) if team else None
        goes_on = self._places.open or self._places.expects_more  # else it is what the run ends with
        if goes_on and str(fault) not in map(str, self._faults):
            self._progress.note(str(fault))
        if record is not None:
            self._done(record, self._places.label(number))
        self._faults.append(fault)

    def _dismiss_all(self) -> None:
        """Let all judges go, side by side: giving a GPU back takes each a second."""
        left = list(self._places.open)
        for number in left:
            if number in self._waiting:
                self._places.send(number, None)
            else:  # it waits for another run to end, or times a control that nobody needs any more
                self._places.interrupt(number)
        self._places.end_all(left)
