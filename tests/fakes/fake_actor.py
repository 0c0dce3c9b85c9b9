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

from harness.results.assembly import harness_hash


class FakeActor:
    """Stands where `runs.cluster.actor.RefereeActor` does. `MODEL` in a node's environment is what its GPU is called."""

    HASH = harness_hash()

    def __init__(self, program: str, device: str) -> None:
        self._said: queue.SimpleQueue = queue.SimpleQueue()
        self._name = os.environ.get("MODEL", "Pretended")
        self._uuid = f"GPU-{os.getpid()}"

    def open(self) -> str:
        return json.dumps({"version": "", "hash": self.HASH, "pid": os.getpid()})

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
            identity = {"kind": "cuda", "name": self._name, "uuid": self._uuid, "sm": "9.0", "torch": "2", "cuda": "13"}
            self._said.put(["device", identity])
            if body["kind"] == "assignment":
                self._problem = body["problem"]["name"]
                self._said.put(["free", None])
        elif body["kind"] == "delivery":
            entry = body["entries"][str(body["job"]["entry"])]
            name, source = (entry, "") if isinstance(entry, str) else (entry["name"], entry["source"])
            self._said.put(["stage", name, "timing"])
            if self._goes_on(source):
                role = "baseline" if isinstance(entry, str) else "candidate"
                self._said.put(["record", self._record(self._problem, name, role), {}])
                self._said.put(["free", self._fault(source)])
        elif body["kind"] == "job" and self._goes_on(body["candidate"]["source"]):
            record = self._record(body["problem"]["name"], body["candidate"]["name"], "candidate")
            self._said.put(["answer", body["number"], record, {}, self._fault(body["candidate"]["source"])])

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

    def _record(self, problem: str, name: str, role: str) -> dict:
        return {
            "run_id": self._uuid, "utc": "2026-01-01T00:00:00+00:00", "problem": problem, "sizes": "", "dtype": "float32",
            "candidate": name, "role": role, "status": "ok", "time_us": 100.0, "speedup": 1.0, "speedup_lo": 0.9,
            "speedup_hi": 1.1, "device_kind": "cuda", "device_name": self._name, "uuid": self._uuid,
        }

    def interrupt(self) -> None:
        """It is at nothing."""

    def end(self) -> None:
        self._said.put(["gone", "ended"])  # whoever still hears need not wait


class OutdatedOnA100(FakeActor):
    """As where the nodes with an A100 have another version of this software."""

    def open(self) -> str:
        other = {"version": "0.0", "hash": "another"} if self._name == "A100" else {}
        return json.dumps(json.loads(super().open()) | other)


def fake_build(common: str, request: str, wanted: object) -> tuple[str, list]:
    """Stands where `runs.cluster.builds.built` does: nothing is compiled."""
    return "built", ["{}", {}]


def fake_toolchain(capability: str | None, archs: object) -> dict:
    """Stands where `runs.cluster.builds.toolchain_here` does: all nodes are alike."""
    return {}
