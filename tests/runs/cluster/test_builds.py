"""Builds as tasks: where the compilers differ the device's own node builds, and a lost task costs a row, not the run."""

from __future__ import annotations

import json
import os
import sys
import time

import pytest

from harness.device.identity import DeviceIdentity
from harness.model.verdict import ReasonCode
from harness.results.assembly import harness_hash
from harness.runs.cluster import builds as cluster_builds
from harness.runs.cluster.builds import ClusterBuilds, toolchain_here
from harness.runs.cluster.link import Link

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]
NAMES = ("returns_none", "wrong_shape", "raises_in_init", "raises_in_forward")


@pytest.fixture(autouse=True)
def _by_value(monkeypatch):
    """A node's processes take these functions as they come, and import nothing of the tests."""
    import ray

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(cluster_builds, "toolchain_here", quick_toolchain)


def quick_toolchain(capability, archs):
    return {"torch": "2"}


def unlike_at_first(common, request, wanted):
    """As a node whose compilers are others, until it is asked as the device's own."""
    assert "torch" in wanted
    return ("built", ['{"of": "its own node"}', {}]) if json.loads(request)["anyhow"] else ("unlike", [])


def failing_at_first(common, request, wanted):
    """As a node without this software, and then as the device's own."""
    if not json.loads(request)["anyhow"]:
        raise ModuleNotFoundError("harness")
    return "built", ['{"of": "its own node"}', {}]


def dying(common, request, wanted):
    os._exit(1)


def quick(common, request, wanted):
    return "built", [json.loads(request)["candidate"]["name"], {}]


def builds_with(build, request_for, nodes, link=None, **options):
    import ray

    asked = request_for(NAMES)
    node = next(each["NodeID"] for each in ray.nodes() if each["Alive"] and each["Resources"].get("CPU"))
    device = DeviceIdentity("cuda", "Pretended GPU", sm="9.0")
    made = ClusterBuilds(link or Link("cuda", build=build), asked.problem, asked.settings, device, node, **options)
    made.add(asked.candidates)
    return made, asked.candidates


def wait_for(builds, candidate, timeout_s=60.0):
    until = time.monotonic() + timeout_s
    while not builds.is_ready(candidate):
        assert time.monotonic() < until
        time.sleep(0.05)
    return builds.result(candidate)


def test_a_build_is_for_one_pytorch_one_compiler_and_this_very_software():
    here = toolchain_here("9.0", ())
    assert here["harness"] == harness_hash() and here["torch"] and here["cxx_version"]


@pytest.mark.parametrize("build", [unlike_at_first, failing_at_first])
def test_what_other_compilers_would_build_or_none_the_device_s_own_node_does(nodes, request_for, build):
    import ray

    builds, candidates = builds_with(build, request_for, nodes)
    assert ray.get(wait_for(builds, candidates[0])) == ['{"of": "its own node"}', {}]


def test_a_build_whose_process_ends_is_the_machine_s_fault_in_words(nodes, request_for):
    builds, [candidate, *_] = builds_with(dying, request_for, nodes)
    text, files = wait_for(builds, candidate, 120.0)
    status, code, reason = json.loads(text)["verdict"]
    assert (status, code, files) == ("skipped", ReasonCode.DEVICE_LOST.value, {})
    assert "its build was lost" in reason
    builds.close()


def test_only_so_many_are_begun_as_are_wanted_ahead_and_the_next_once_one_is_given_up(nodes, request_for):
    builds, candidates = builds_with(quick, request_for, nodes, ahead=2)
    for each in candidates[:2]:
        wait_for(builds, each)
    time.sleep(0.2)
    assert not builds.is_ready(candidates[2]) and not builds.is_idle
    builds.give_up(candidates[0])
    wait_for(builds, candidates[2])
    builds.is_paused = True
    builds.give_up(candidates[1])
    time.sleep(0.2)
    assert not builds.is_ready(candidates[3]) and builds.is_idle
    builds.is_paused = False
    wait_for(builds, candidates[3])
    assert builds.is_idle


def test_what_is_begun_and_given_up_ends_nothing_else_and_nothing_is_quiet_until_it_is_made(nodes, request_for):
    link = Link("cuda", build=quick)
    for _ in range(100):
        builds, _ = builds_with(quick, request_for, nodes, link)
        builds.look()
        builds.close()
    assert builds.waiting == 0 and link.unwanted
    other, candidates = builds_with(quick, request_for, nodes, link)
    assert not other.is_idle
    for each in candidates:
        wait_for(other, each)
    until = time.monotonic() + 60
    while not other.is_idle:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert not link.unwanted
