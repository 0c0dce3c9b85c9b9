"""Judges of a fleet that are threads with a script instead of processes, and builds that end when a test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing import Pipe
from typing import Any

from harness.build.product import Build
from harness.device.identity import DeviceIdentity
from harness.model.baselines import BASELINES
from harness.model.candidate import Candidate
from harness.model.verdict import Status
from harness.results.record import Record
from harness.runs.fleet.device_judge import Assignment


class FakeReferee:
    """What a fleet takes for a process on `device`: `script(judge)` is its life once it has opened a device of `model`.

    `killed` ends it as SIGKILL would; `judged` has the names of what it sent records of.
    """

    pid = 0

    def __init__(self, device: str, script: Callable[[FakeReferee], None], model: str = "Scripted") -> None:
        self.device, self._model, self._script = device, model, script
        self.device_inside = "cuda:0"
        self.pipe, self.far = Pipe()
        self.assigned: Assignment | None = None
        self.judged: list[str] = []
        self._is_killed = False
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        try:
            self.assigned = self.far.recv()
            if not self._is_killed:
                self.far.send(("device", asdict(DeviceIdentity("cuda", self._model, uuid=f"GPU-{self.device}"))))
                self._script(self)
        except (EOFError, OSError):
            pass
        finally:
            self.far.close()

    def next_entry(self) -> Any:
        """Ask for an entry as a free judge does; None where there is no more."""
        self.far.send(("free", None))
        delivery = self.far.recv()
        if delivery is None:
            return None
        entry = delivery.entries[delivery.job.entry]
        return BASELINES[entry] if isinstance(entry, str) else entry

    def judge(self, entry: Any) -> None:
        """Send the record of a sound row."""
        is_candidate = isinstance(entry, Candidate)
        self.judged.append(entry.name)
        self.far.send(("stage", entry.name, "timing"))
        row = Record(
            run_id=self.device, utc=self.assigned.utc, problem="small", sizes="M=16", dtype="float32", candidate=entry.name,
            role="candidate" if is_candidate else "baseline", source_hash="0" * 16, status=Status.OK, time_us=10.0,
            device_name=self._model, device_kind="cuda", uuid=f"GPU-{self.device}",
        )
        self.far.send(("record", row.to_json(), {}))

    def killed(self) -> None:
        self._is_killed = True
        raise EOFError

    def interrupt(self) -> None:
        """It ends with its pipe."""

    def end(self) -> None:
        self.pipe.close()
        self._thread.join(5.0)

    def how_it_ended(self) -> str:
        return "ended by SIGKILL"


def judges_all(referee: FakeReferee) -> None:
    """The life of a judge that judges whatever it is given, its control first."""
    while (entry := referee.next_entry()) is not None:
        referee.judge(entry)


class FakeBuilds:
    """Stands for the queue of a team: all is built, and compilers run until `is_idle` is set, or while it `is_paused`
    until `has_ended` is: those that had begun.
    """

    waiting = 0

    def __init__(self, is_idle: bool = True) -> None:
        self._is_idle, self.is_paused, self.has_ended = is_idle, False, False

    @property
    def is_idle(self) -> bool:
        return self._is_idle or (self.is_paused and self.has_ended)

    @is_idle.setter
    def is_idle(self, value: bool) -> None:
        self._is_idle = value

    def is_ready(self, candidate: Candidate) -> bool:
        return True

    def result(self, candidate: Candidate) -> Build:
        return Build(None)

    def give_up(self, candidate: Candidate) -> None:
        """It is needed no more."""

    def close(self) -> None:
        """Nothing is left behind."""
