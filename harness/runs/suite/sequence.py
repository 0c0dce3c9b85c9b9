"""The problems of a suite, judged in children: one after the other, or with several devices one on each at a time."""

from __future__ import annotations

import argparse
import shlex
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.device.choice import ray_words
from harness.device.identity import DeviceIdentity
from harness.model.candidate import Candidate
from harness.model.errors import HarnessError, NothingToRun
from harness.model.files.text_files import shown
from harness.model.paths import PROGRAM
from harness.model.problem import Problem, typed
from harness.model.settings import Settings, extras_of, typed_flags
from harness.results.reader import read_records
from harness.results.record import Record
from harness.results.reuse import Kept, kept_at_every_size
from harness.runs.suite import children
from harness.runs.suite.problems import Loaded, is_suite
from harness.runs.suite.summary import OfModel, Outcome

if TYPE_CHECKING:
    from harness.runs.cluster.run import ClusterJudges

    Judges = children.WarmChild | ClusterJudges

_POLL_S = 5.0  # for judges elsewhere that have come since


@dataclass(frozen=True)
class Suite:
    """What all problems of the suite share; `devices` are those on which earlier rows may stand, with --resume. Each
    problem is judged on any one of them, or `on_all`: then each model judges all that it has no row of.
    """

    options: argparse.Namespace
    settings: Settings
    devices: Sequence[DeviceIdentity]
    on_all: bool = False

    def begun(self, loaded: Loaded, candidates: list[Candidate]) -> Outcome | _Asked:
        """What is to be judged, or the outcome where nothing is."""
        problem, options = loaded.problem, self.options
        if problem is None:
            return Outcome(loaded.path, loaded.path.stem, fault=loaded.fault)
        if not candidates:
            return Outcome(loaded.path, problem.name, without_candidate=not (options.only or options.skip))
        by_group = [
            kept_at_every_size(options.out, problem, candidates, self.settings, group) for group in self._groups()
        ]
        left = [each for each in candidates if any(each.name not in kept for kept in by_group)]
        rows = tuple(row for kept in by_group for each in kept.values() for row in each)
        asked = _Asked(loaded.path, problem, candidates, rows, {
            # A model that is not known yet has no rows, and judges all.
            "problem": problem, "candidates": candidates if self.on_all else left, "device": options.device,
            "settings": self.settings, "out_dir": options.out, "sanitize": options.sanitize,
            "extras": extras_of(options), "wait_s": options.wait, "kept": rows,
            "command": _command(problem, candidates, options),
        })
        sources = dict.fromkeys(each.csv_path for each in rows)
        if not left and len(sources) == len(by_group):
            return asked.outcome(list(sources))  # a whole earlier run: there is nothing to add to it
        return asked

    def _groups(self) -> list[list[DeviceIdentity]]:
        """The devices by what is judged on one of them alone; without any, one group without any."""
        if not self.on_all:
            return [list(self.devices)]
        teams: dict[Hashable, list[DeviceIdentity]] = {}
        for each in self.devices:
            teams.setdefault(each.team, []).append(each)
        return list(teams.values()) or [[]]


@dataclass(frozen=True)
class _Asked:
    """A problem that is to be judged, the rows kept of it, and the fields of its `RunRequest`."""

    path: Path
    problem: Problem
    candidates: Sequence[Candidate]
    kept: Sequence[Kept]
    fields: Mapping[str, Any]

    def outcome(self, csv_paths: Sequence[Path], fault: str | None = None) -> Outcome:
        """What became of it, from the files that were written, with the rows kept of devices that have none of them; and why
        a model has none, if one has none.
        """
        names = {each.name for each in self.candidates}
        rows = [(path, record) for path in csv_paths for record in read_records(path)
                if record.role == "baseline" or record.candidate in names]
        written = {(record.run_id, record.candidate, record.sizes) for _, record in rows}
        rows += [(each.csv_path, each.record) for each in self.kept
                 if (each.record.run_id, each.record.candidate, each.record.sizes) not in written]
        teams: dict[Hashable, list[tuple[Path, Record]]] = {}
        for path, record in rows:
            teams.setdefault(record.team, []).append((path, record))
        return Outcome(self.path, self.problem.name, tuple(
            OfModel(own[0][0], tuple(record for _, record in own), len(self._kept_on(team))) for team, own in teams.items()
        ), fault)

    def _kept_on(self, team: Hashable) -> set[str]:
        return {each.record.candidate for each in self.kept if each.record.team == team}


def each_judged(
    loaded: Sequence[Loaded], chosen: Mapping[Path, list[Candidate]], suite: Suite, devices: Sequence[str],
    tell: Callable[[str], None], elsewhere: Callable[[], Sequence[Judges]] | None = None,
) -> Iterator[Outcome]:
    """The outcomes as they come: a problem on each device at a time, or on each judge that is `elsewhere`, which gives
    those that have come since; each problem on all devices where there are fewer. Nothing here ends the suite but the
    user, and a machine that has no such device.
    """
    waiting = deque(enumerate(loaded, 1))
    together = len(devices) > 1 and len(loaded) < len(devices)
    silent, warm = suite.options.json, list(elsewhere() if elsewhere else ())
    if elsewhere is None and not together:  # one process for each, and so for a device that is named twice
        warm = [children.WarmChild(each, silent=silent, label=each if len(devices) > 1 else None) for each in devices]
    free = deque(warm) if elsewhere else deque(warm or [None])
    at_work: dict[Any, tuple[children.Child | Judges, _Asked, Judges | None]] = {}
    try:
        while waiting or at_work:
            while waiting and free:
                number, each = waiting.popleft()
                name = each.problem.name if each.problem else shown(each.path)
                tell(f"[{number}/{len(loaded)}] {name}")
                asked = _guarded(each, lambda: suite.begun(each, chosen.get(each.path, [])))
                if isinstance(asked, Outcome):
                    yield asked
                    continue
                place = free.popleft()
                child = place or children.Child(children.judging(asked.fields, devices, silent=silent))
                if place is not None:
                    place.ask(asked.fields)
                at_work[child.pipe] = (child, asked, place)
            # Nothing at all would be waited for without end.
            for pipe in wait(list(at_work), _POLL_S if elsewhere else None) if at_work else ():
                child, asked, place = at_work.pop(pipe)
                free.append(place)
                yield _guarded(asked, lambda: asked.outcome([Path(each) for each in child.answer()], child.fault))
            if elsewhere and waiting:
                if not at_work and not free:
                    time.sleep(_POLL_S)  # its last device is lost, and another may come
                more = elsewhere()
                warm += more
                free += more
    except KeyboardInterrupt:
        for child, _, _ in at_work.values():
            child.interrupt()
        raise
    finally:
        for child in warm:
            child.close()


def _guarded(asked: Loaded | _Asked, work: Callable[[], Any]) -> Any:
    """What `work` returns, or the outcome of a failed problem. Raises NothingToRun: the next would hear the same."""
    try:
        return work()
    except NothingToRun:
        raise
    except HarnessError as error:
        return Outcome(asked.path, asked.problem.name if asked.problem else asked.path.stem, fault=str(error))


def _command(problem: Problem, candidates: Sequence[Candidate], options: argparse.Namespace) -> str:
    """What to type to run this problem of the suite by itself."""
    words = [*PROGRAM.split(), typed(problem.path)]
    if options.candidates is not None:
        folders = {each.path.parent for each in candidates}
        words += ["--candidates", str(shown(folders.pop() if len(folders) == 1 else options.candidates))]
        if is_suite(options.problem) and any(each.path.parent == options.candidates for each in candidates):
            words += [word for each in candidates for word in ("--only", each.name)]
    flags = "mode baselines baseline device devices config out sizes sanitize energy extra_times".split()
    return shlex.join([*words, *typed_flags(options, *flags), *ray_words(options)])
