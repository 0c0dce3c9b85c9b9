"""What a suite comes to later is built by the time it is judged."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from harness.build.cache import ENVIRONMENT_VARIABLE, Cache
from harness.device.cpu import CpuBackend
from harness.judge.build_pool import queue_for, toolchain_for
from harness.model.candidate import read_candidate
from harness.model.problem import load_problem
from harness.model.settings import load_settings
from harness.runs.suite import early_builds as ahead
from harness.runs.suite.children import Child
from harness.sandbox.sandbox_choice import strongest_sandbox

pytestmark = [pytest.mark.processes, pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")]

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.rand(8)]
"""
# Each is as quick to build as one that compiles is slow: its import says that it ran.
CANDIDATE = """
import pathlib, torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x + {number}
"""


@pytest.fixture
def wanted(tmp_path, monkeypatch):
    """Three problems with two candidates each, and a cache of their own."""
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "cache"))
    made = []
    for number in range(3):
        folder = tmp_path / f"{number}_x"
        folder.mkdir()
        (tmp_path / f"{number}_x.py").write_text(REFERENCE)
        for name in ("a", "b"):
            (folder / f"{name}.py").write_text(CANDIDATE.format(number=f"{number}.{ord(name)}"))
        candidates = [read_candidate(folder / f"{name}.py") for name in ("a", "b")]
        made.append((load_problem(tmp_path / f"{number}_x.py"), candidates))
    return made


def kept(wanted, device):
    """For each problem, how many of its candidates the cache answers for at once."""
    counts = []
    for problem, candidates in wanted:
        with queue_for(
            problem, candidates, toolchain_for(None, ()), load_settings("quick"), device, Cache(), strongest_sandbox()
        ) as queue:
            counts.append(sum(each in queue._done for each in candidates))
    return counts


def test_after_it_the_cache_has_the_builds_of_all_problems(wanted):
    device = CpuBackend().identity
    assert kept(wanted, device) == [0, 0, 0]
    ahead.build_in_order(wanted, device, load_settings("quick"))
    assert kept(wanted, device) == [2, 2, 2]


def test_a_candidate_with_a_fault_is_left_to_its_own_run(wanted, tmp_path):
    (tmp_path / "0_x" / "a.py").write_text("class ModelNew(:\n")
    problem, (_, other) = wanted[0]
    faulty = read_candidate(tmp_path / "0_x" / "a.py")
    assert faulty.fault is not None
    device = CpuBackend().identity
    ahead.build_in_order([(problem, [faulty, other])], device, load_settings("quick"))
    assert kept([(problem, [other])], device) == [1]


def test_while_a_suite_goes_on_a_child_builds_and_goes_with_it(wanted, monkeypatch):
    device = replace(CpuBackend().identity)
    monkeypatch.setattr(ahead, "_gpu", lambda name: device)
    with ahead.building_ahead(wanted, "cuda:0", load_settings("quick")):
        deadline = time.monotonic() + 120
        while len(list((Cache().root / "entries").iterdir())) < 6 and time.monotonic() < deadline:
            time.sleep(0.1)
    assert kept(wanted, device) == [2, 2, 2]


def test_it_ends_at_once_where_builds_are_still_to_come(wanted, monkeypatch):
    started = []
    monkeypatch.setattr(ahead, "_gpu", lambda name: time.sleep(600))
    monkeypatch.setattr(ahead, "Child", lambda work: started.append(Child(work)) or started[0])
    with ahead.building_ahead(wanted, "cuda:0", load_settings("quick")):
        pid = started[0]._process.pid
        os.kill(pid, 0)
    assert not started[0]._process.is_alive()


@pytest.mark.parametrize(("candidates", "device"), [(0, "cuda:0"), (1, "cpu")])
def test_where_nothing_is_to_come_and_on_a_cpu_no_child_is_started(wanted, monkeypatch, candidates, device):
    started = []
    monkeypatch.setattr(ahead, "Child", started.append)
    some = [(problem, each[:candidates]) for problem, each in wanted]
    with ahead.building_ahead(some, device, load_settings("quick")):
        assert started == []


def test_a_device_that_turns_out_to_be_a_cpu_is_left_alone(wanted):
    with ahead.building_ahead(wanted, "auto", load_settings("quick")):
        time.sleep(3)
    assert kept(wanted, CpuBackend().identity) == [0, 0, 0]
