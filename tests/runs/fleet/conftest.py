"""Fleets whose judges are scripted threads; no device is opened and nothing is built."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from fake_fleet import FakeBuilds
from fake_worker import PRODUCT, SETTINGS, problem_in
from listening import Listening

from harness.judge.run import RunRequest
from harness.model.candidate import read_candidate
from harness.runs.fleet.fleet import Fleet, LocalExecutors


@dataclass
class ScriptedFleet:
    """A run of a small problem with the candidates "mine" and "other" on these judges; `told` is what was said."""

    request: RunRequest
    judges: list
    told: Listening = field(default_factory=Listening)

    def run(self):
        with ExitStack() as stack:
            return Fleet(self.request, LocalExecutors(self.judges), self.told, stack).run()


@pytest.fixture
def fleet_of(tmp_path, monkeypatch):
    """`fleet_of(judges, builds)`: a `ScriptedFleet`; `builds` are those of each model by its name."""

    def make(judges, builds=None, names=("mine", "other")):
        known = builds or {}
        monkeypatch.setattr(
            "harness.runs.fleet.fleet.queue_for",
            lambda problem, sound, toolchain, settings, device, *_: known.get(device.name) or FakeBuilds(),
        )
        monkeypatch.setattr("harness.runs.fleet.fleet.note_no_sandbox", lambda progress: None)
        monkeypatch.setattr("harness.runs.fleet.fleet.strongest_sandbox", lambda: None)
        problem = problem_in(tmp_path)
        for name in names:
            (tmp_path / f"{name}.py").write_text(f"{PRODUCT}\nModelNew = Model\n")
        candidates = [read_candidate(tmp_path / f"{name}.py") for name in names]
        return ScriptedFleet(RunRequest(problem, candidates, "auto", SETTINGS, tmp_path / "results"), list(judges))

    return make
