"""What Ray places beside a device, without a judge: it answers at once, or does what the candidate's source says.

`# first: FILE` has the first actor that meets the candidate make the file and say nothing more; `# kills` has every one end.
`# device fails` has it answer, and say of its device that it judges nothing more.
Ray's workers need not find this module: it goes to them by value.
"""

from __future__ import annotations

import json
import os
import queue
import re
from pathlib import Path

from harness.model.sizes_text import sizes_text
from harness.results.assembly import harness_hash
from harness.runs.cluster.parcel import settings_of


class FakeActor:
    """Stands where `runs.cluster.actor.RefereeActor` does. `MODEL` in a node's environment is what its GPU is called;
    `TORCH` and `DRIVER` are its versions, and `HASH` that of this software.
    """

    HASH = harness_hash()

    def __init__(self, program: str, device: str) -> None:
        self._said: queue.SimpleQueue = queue.SimpleQueue()
        self._uuid = f"GPU-{os.getpid()}"
        self._device = {
            "kind": "cuda", "name": os.environ.get("MODEL", "Pretended"), "uuid": self._uuid, "sm": "9.0",
            "torch": os.environ.get("TORCH", "2"), "cuda": "13", "driver": os.environ.get("DRIVER", "580"),
        }

    def open(self) -> str:
        return json.dumps({"version": "", "hash": os.environ.get("HASH", self.HASH), "pid": os.getpid()})

    def hear(self, timeout_s: float, text: str | None = None, *builds: object) -> list[str]:
        if text is not None:
            self.send(text, *builds)
        try:
            said = [self._said.get(timeout=timeout_s)]
            while not self._said.empty():
                said.append(self._said.get())
            return [json.dumps(each) for each in said]
        except queue.Empty:
            return []

    def send(self, text: str, *builds: list) -> None:
        for values, files in builds:  # as they cross, and no references to them
            assert isinstance(json.loads(values), dict) and isinstance(files, dict)
        body = json.loads(text)
        if body["kind"] == "assignment" or (body["kind"] == "word" and isinstance(body["word"], dict)):
            self._said.put(["device", self._device])
            if body["kind"] == "assignment":
                self._asked = body
                self._said.put(["free", None])
        elif body["kind"] == "delivery":
            entry = body["entries"][str(body["job"]["entry"])]
            name, source = (entry, "") if isinstance(entry, str) else (entry["name"], entry["source"])
            self._said.put(["stage", name, "timing"])
            if self._goes_on(source):
                role, digest = ("baseline", None) if isinstance(entry, str) else ("candidate", entry["source_hash"])
                self._said.put(["record", self._record(self._asked, name, role, digest), {}])
                self._said.put(["free", self._fault(source)])
        elif body["kind"] == "job" and self._goes_on(body["candidate"]["source"]):
            candidate = body["candidate"]
            record = self._record(body, candidate["name"], "candidate", candidate["source_hash"])
            self._said.put(["answer", body["number"], record, {}, self._fault(candidate["source"])])

    def _goes_on(self, source: str) -> bool:
        if "# kills" in source:
            os._exit(1)
        first = re.search(r"# first: (\S+)", source)
        if first is None or Path(first[1]).exists():
            return True
        Path(first[1]).touch()
        return False

    def _fault(self, source: str) -> str | None:
        return "it computes wrongly" if "# device fails" in source else None

    def _record(self, asked: dict, name: str, role: str, digest: str | None) -> dict:
        problem, device = asked["problem"], self._device
        return {
            "run_id": self._uuid, "utc": "2036-01-01T00:00:00+00:00", "problem": problem["name"], "dtype": problem["dtype"],
            "problem_hash": problem["hash"], "mode": problem["mode"], "sizes": sizes_text(problem["sizes"]),
            "harness_hash": self.HASH, "config_hash": settings_of(asked["settings"]).hash, "candidate": name, "role": role,
            "source_hash": digest, "status": "ok", "time_us": 100.0, "speedup": 1.0, "speedup_lo": 0.9,
            "speedup_hi": 1.1, "device_kind": "cuda", "device_name": device["name"],
            **{each: device[each] for each in ("uuid", "torch", "cuda", "driver")},
        }

    def interrupt(self) -> None:
        """It is at nothing."""

    def end(self) -> None:
        self._said.put(["gone", "ended"])  # whoever still hears need not wait


class OutdatedOnA100(FakeActor):
    """As where the nodes with an A100 have another version of this software."""

    def open(self) -> str:
        other = {"version": "0.0", "hash": "another"} if self._device["name"] == "A100" else {}
        return json.dumps(json.loads(super().open()) | other)


def fake_build(common: str, request: str, wanted: object) -> tuple[str, list]:
    """Stands where `runs.cluster.builds.built` does: nothing is compiled."""
    return "built", ["{}", {}]


def fake_toolchain(capability: str | None, archs: object) -> dict:
    """Stands where `runs.cluster.builds.toolchain_here` does: all nodes are alike."""
    return {}
