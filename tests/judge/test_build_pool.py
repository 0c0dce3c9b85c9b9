"""What lasts as long as a run, and what outlives it: the folders of the baselines' compiled kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.build.cache import ENVIRONMENT_VARIABLE
from harness.device.choice import open_backend
from harness.judge.build_pool import BuildPool
from harness.model.baselines import BASELINES
from harness.model.problem import load_problem
from harness.model.settings import load_settings

CORPUS = Path(__file__).resolve().parents[1] / "adversarial"


@pytest.fixture
def folder_of(tmp_path, monkeypatch):
    """`folder_of(name, M)`: where a baseline's kernels lie that were compiled at that size on a CPU."""
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "cache"))
    backend, settings = open_backend("cpu"), load_settings("quick")

    def folder_of(name: str, size: int) -> Path:
        problem = replace(load_problem(CORPUS / "tril_small.yaml", CORPUS), cpu_sizes={"M": size})
        with BuildPool(problem, [], backend, settings) as build_pool:
            prepared, starter = build_pool.prepared(BASELINES[name])
            starter.close()
        return prepared.triton_cache.parent

    return folder_of


def test_on_a_cpu_a_baseline_has_a_folder_for_all_problems_since_the_trial_of_the_compiler_takes_longest(folder_of):
    compiled = folder_of("torch.compile", 64)
    assert compiled == folder_of("torch.compile", 96) and compiled.is_dir()
    assert compiled != folder_of("eager", 64)


def test_a_pause_waits_for_what_has_begun_and_ends_when_it_is_told_to():
    """The queue itself: tests/build/test_queue.py."""
    said = []

    class Queue:
        is_paused = is_idle = False

        def wait_until_idle(self):
            said.append(("waited for", self.is_paused))

        def close(self):
            said.append(("closed", self.is_paused))

    problem = load_problem(CORPUS / "tril_small.yaml", CORPUS)
    with BuildPool(problem, [], open_backend("cpu"), load_settings("quick"), builds=Queue()) as build_pool:
        build_pool.pause()
        build_pool.go_on()
    assert said == [("waited for", True), ("closed", False)]
