"""A Ray cluster of several nodes on this machine's CPU: each has a temporary folder, locks and a cache of its own, and a
pretended GPU of some model, for actors that pretend as well.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from listening import Listening

from harness.build.cache import ENVIRONMENT_VARIABLE
from harness.judge.run import RunRequest
from harness.model.candidate import read_candidate
from harness.model.paths import REPOSITORY
from harness.model.problem import load_problem
from harness.model.settings import load_settings
from harness.runs.cluster import referees
from harness.runs.cluster.link import Link
from harness.runs.cluster.referees import Referees

pytest.importorskip("ray", reason="Ray is not installed")

CORPUS = REPOSITORY / "tests" / "adversarial"
STORE_BYTES = 80 << 20  # the least that Ray takes


class Nodes:
    """The nodes of a cluster; `add` one, the first as its head, `remove` one as if its machine were gone."""

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster

        self.folder, self.count = folder, 0
        self.cluster = Cluster()

    def add(self, model: str, **versions: str):
        """Start a node with a core and a pretended GPU of that model; TORCH, DRIVER and HASH are its versions."""
        self.count += 1
        own = self.folder / f"node{self.count}"
        own.mkdir()
        variables = {"TMPDIR": str(own), ENVIRONMENT_VARIABLE: str(self.folder / f"cache{self.count}"), "MODEL": model,
                     **versions}
        return self.cluster.add_node(
            num_cpus=1, num_gpus=1, resources={f"accelerator_type:{model}": 1}, object_store_memory=STORE_BYTES,
            env_vars=variables, **({"include_dashboard": False} if self.count == 1 else {}),
        )

    def remove(self, node) -> None:
        import ray

        self.cluster.remove_node(node, allow_graceful=False)
        until = time.monotonic() + 60
        while any(each["Alive"] and each["NodeID"] == node.node_id for each in ray.nodes()) and time.monotonic() < until:
            time.sleep(0.1)


@pytest.fixture(scope="session")
def nodes(tmp_path_factory):
    """A cluster of two nodes, with an H100 and an A100, for all tests; what a test adds it removes."""
    import ray

    os.environ["RAY_health_check_period_ms"], os.environ["RAY_health_check_failure_threshold"] = "500", "4"
    os.environ["RAY_worker_niceness"] = "0"
    made = Nodes(tmp_path_factory.mktemp("ray"))
    made.add("H100")
    made.add("A100")
    ray.init(address=made.cluster.address, log_to_driver=False, logging_level="error", namespace="kernel-referee")
    yield made
    ray.shutdown()
    made.cluster.shutdown()


@pytest.fixture
def opened(monkeypatch):
    """`opened(places, told)`: `Referees` whose judges are at these pretended places; `words` are more of their own."""
    made = []

    def open_at(places, told=None, **words):
        monkeypatch.setattr(referees, "RayExecutors", lambda *_, **__: places)
        made.append(Referees(link=Link("cpu"), progress=told or Listening(), **words))
        return made[-1]

    yield open_at
    for each in made:
        each.close()


@pytest.fixture
def request_for(tmp_path):
    """`request_for(names)`: candidates of the corpus that end early, on a small problem."""
    problem = load_problem(CORPUS / "tril_small.yaml", CORPUS)
    problem = replace(problem, check_sizes=({"M": 31},), cpu_sizes={"M": 64})
    settings = load_settings(str(REPOSITORY / "configs" / "selftest.yaml"))

    def of(names, **changes):
        candidates = [read_candidate(CORPUS / "form" / f"{name}.py") for name in names]
        return replace(RunRequest(problem, candidates, "cpu", settings, tmp_path / "results"), **changes)

    return of
