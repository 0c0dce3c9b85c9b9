"""Rounds on a scripted worker and device: known times in, and a log of who launched how much when."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.device.backend import LocalTimes
from harness.device.identity import Telemetry, Violations
from harness.launch.conversation import Launch, Launches
from harness.model.device_limits import limits_of
from harness.reference.inputs.families import GIVEN
from harness.timing.rounds import Rounds


class ScriptedSession:
    """A worker whose launches take what `time_us(number of the segment)` says; the first of a segment is slow."""

    def __init__(self, time_us, log, hidden=None, steps_us=40.0):
        self._time_us, self._log, self._hidden, self._steps_us = time_us, log, hidden, steps_us
        self.opened, self.segments = [], 0
        self.end_to_end_us = 77.0
        self.early_us, self.early_s, self.completed_later_us, self.valued_later_us = 1111.0, 0.0, 0.0, 0.0

    timer = "scripted"
    room = 100  # launches that fit into a queue
    takes_long = False

    def open(self, reference, count):
        self.opened.append(count)

    late_in_worker, in_workers = (), 0
    in_worker_us = None  # what the baseline takes in the worker; None where it cannot be constructed there

    def load_reference(self, reference):
        return self.in_worker_us is not None

    def time_reference(self, sets, *, gate, meanwhile=None):
        if meanwhile is not None:
            meanwhile()
        self._log.append(("I", len(sets), gate))
        if isinstance(self.in_worker_us, Exception):
            raise self.in_worker_us
        if self.in_worker_us == "raises":
            return "raised RuntimeError: patched"
        times = [1000 * self.in_worker_us] + [self.in_worker_us] * (len(sets) - 1)
        hidden = self._in_worker_hidden() and len(sets) <= self.room if gate else None
        return Launches([Launch(each, 3.0, each, None, []) for each in times], 1.0, hidden, [True] * len(sets))

    def _in_worker_hidden(self):
        """Whether the queue of the baseline was gated: not the one whose number `late_in_worker` has, from 1."""
        self.in_workers += 1
        return self.in_workers not in self.late_in_worker

    synchronised = 0

    def note_helpers(self):
        self._log.append(("helpers",))

    def launch(
        self, sets, *, gate, timeout_s=None, early_s=None, inspect=False, late_inputs=None, meanwhile=None,
        synchronised=False, record=False,
    ):
        if meanwhile is not None:
            meanwhile()
        if synchronised:
            self.synchronised += 1
        self.early_s = max(early_s or 0.0, self.early_s)
        if late_inputs is not None:
            self._log.append(("completed", len(sets), gate))
            times = [self._time_us(self.segments)] * len(sets)
            times[late_inputs.index] += self.completed_later_us
            return Launches([Launch(each, 3.0, 1.0, None, []) for each in times], 1.0, None, [True] * len(sets))
        if any(inputs.family is not GIVEN for inputs in sets):
            self._log.append(("valued", len(sets), gate))
            times = [self._time_us(self.segments) + self.valued_later_us * (each.family is not GIVEN) for each in sets]
            return Launches([Launch(each, 3.0, 1.0, None, []) for each in times], 1.0, None, [True] * len(sets))
        if early_s is not None:  # a look at early inputs, of which every other segment is as usual
            self._log.append(("recorded" if record else "inspected" if inspect else "early", len(sets), gate))
            time_us = self.early_us if early_s else self._time_us(self.segments)
            launches = [Launch(time_us, 3.0, 1.0, None, [])] * len(sets)
            return Launches(launches, 1.0, None, [True] * len(sets))
        time_us = self._time_us(self.segments)
        self.segments += 1
        self._log.append(("A", len(sets), gate))
        times = [1000 * time_us] + [time_us] * (len(sets) - 1) if len(sets) > 1 else [time_us]
        launches = [Launch(each, 3.0, each + self._steps_us, None, []) for each in times]
        hidden = self._hidden(self.segments) if callable(self._hidden) else self._hidden
        hidden = hidden if len(sets) <= self.room else False
        return Launches(launches, self.end_to_end_us, hidden if gate else None, [True] * len(sets))


class ScriptedBackend:
    """The judge's own arm on the same script, and telemetry from a list."""

    room = 100  # as the session's

    def __init__(self, time_us, log, kind="cpu", throttle=lambda index: None):
        self.limits, self._time_us, self._log, self._throttle = limits_of(kind), time_us, log, throttle
        self.identity = SimpleNamespace(memory_bytes=8 << 30)
        self.readings = 0

    def synchronize(self):
        self._log.append(("synchronize",))

    def local_launches(self, model, sets, *, gate):
        self._log.append(("B", len(sets), gate))
        times_us = [1000 * self._time_us] + [self._time_us] * (len(sets) - 1)
        return LocalTimes(times_us, 50.0, hidden=(len(sets) <= self.room) if gate else None)

    def violations(self):
        return Violations(5_000_000 * self.readings, None)

    def telemetry(self, own_pids):
        self.readings += 1
        return Telemetry(throttle=self._throttle(self.readings - 1))


@pytest.fixture
def scripted():
    """`scripted.Session` and `scripted.Backend`, for tests that set up rounds by themselves."""
    return SimpleNamespace(Session=ScriptedSession, Backend=ScriptedBackend)


@pytest.fixture
def small_regions(monkeypatch):
    """Regions that do not fault in 2 MiB for the kilobytes of each set: nothing here is handed to another process."""
    monkeypatch.setattr("harness.protocol.layout.REGION_BYTES", 4096)


@pytest.fixture
def rounds_of(small_regions, reference_of, settings):
    """`rounds_of(a_us, b_us, …)`: (Timing, log, session, backend) after a whole run."""

    def make(
        a_us, b_us=2000.0, *, kind="cpu", hidden=None, throttle=lambda index: None, verify=None, ends_s=math.inf,
        is_probed=True, **changes
    ):
        log = []
        candidate_us = a_us if callable(a_us) else lambda segment: a_us
        session = ScriptedSession(candidate_us, log, hidden)
        backend = ScriptedBackend(b_us, log, kind, throttle)
        judge = verify or (
            lambda sets, made, only=None: log.append(("verify", len(sets) if only is None else len(only)))
        )
        rounds = Rounds(
            session, backend, reference_of(), replace(settings, **changes), judge, {1}, is_probed=is_probed, ends_s=ends_s
        )
        return rounds.run(), log, session, backend

    return make


@pytest.fixture
def beside(small_regions, reference_of, settings):
    """`beside(a_us, in_worker_us, b_us, **fields)`: (Timing, log) of a GPU on which the baseline can be timed in the
    worker too, with such settings. What is timed is the control, if nothing else is said.
    """

    def make(a_us, in_worker_us, b_us, *, is_control=True, pooled_baseline=None, **fields):
        log = []
        session = ScriptedSession(lambda _: a_us, log)
        session.in_worker_us = in_worker_us
        backend = ScriptedBackend(b_us, log, "cuda")
        wanted = replace(settings, **fields)
        rounds = Rounds(
            session, backend, reference_of(), wanted, lambda sets, made, only=None: None, {1}, is_control=is_control,
            pooled_baseline=pooled_baseline,
        )
        return rounds.run(), log

    return make
