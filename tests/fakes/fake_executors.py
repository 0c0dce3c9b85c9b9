"""Places of a cluster without one: each judge is a function, which a job goes to and from which its answer comes."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from harness.device.identity import DeviceIdentity
from harness.results.record import Record

CPU = DeviceIdentity("cpu", "Pretended CPU", torch="2.13.0")


def answer_to(job: Mapping[str, Any], **changes: Any) -> tuple[Any, ...]:
    """What a judge says that found the candidate of `job` right."""
    candidate = job["candidate"]
    record = Record(**{
        "run_id": "1", "utc": "2026-01-01T00:00:00+00:00", "problem": job["problem"]["name"], "sizes": "", "dtype": "float32",
        "candidate": candidate["name"], "source_hash": candidate["source_hash"], "status": "checked",
        "reason_code": "not_timed", "reason": "it was not timed", **changes,
    })
    return "answer", job["number"], record.to_json(), {}, None


class FakeExecutors:
    """Stands where `runs.cluster.ray_executors.RayExecutors` does: `devices` are there at once, and more can be `opened`.

    `judge(place, job)` returns what the judge of that place says then, or None for nothing; `jobs` has what each was given.
    """

    share_cpu = False
    pending = 0

    def __init__(
        self, judge: Callable[[int, Mapping[str, Any]], tuple | None], devices: Sequence[DeviceIdentity] = (CPU, CPU),
    ) -> None:
        self._judge = judge
        self._said: deque[tuple[int, tuple]] = deque()
        self._moment = threading.Event()
        self.open: list[int] = []
        self.expects_more = True
        self.jobs: list[tuple[int, str]] = []
        for each in devices:
            self.opened(each)

    def __enter__(self) -> FakeExecutors:
        return self

    def __exit__(self, *_: object) -> None:
        self.open.clear()

    def opened(self, device: DeviceIdentity) -> None:
        """Another device is there."""
        number = len(self.open) if not self.open else max(self.open) + 1
        self.open.append(number)
        self._said += [(number, ("here",)), (number, ("device", asdict(device)))]

    def say(self, place: int, *said: Any) -> None:
        """Have the judge of a place say something by itself."""
        self._said.append((place, said))

    def hear(self, timeout_s: float | None) -> Sequence[tuple[int, tuple]]:
        if not self._said:
            self._moment.wait(0.001)
        said, self._said = self._said, deque()
        self.expects_more = False
        return [(number, json.loads(json.dumps(words))) for number, words in said]

    def send(self, number: int, said: Any) -> None:
        """It opens its device."""

    def ask(self, number: int, text: str, builds: Sequence[Any]) -> None:
        job = json.loads(text)
        self.jobs.append((number, job["candidate"]["name"]))
        said = self._judge(number, job)
        if said is not None:
            self._said.append((number, said))

    def label(self, number: int) -> str:
        return f"node{number}:0"

    def node(self, number: int) -> str:
        return f"node{number}"

    def device_inside(self, number: int) -> str:
        return "cpu"

    def end(self, number: int) -> None:
        self.open.remove(number)

    def interrupt(self, number: int) -> None:
        """It is at nothing."""
