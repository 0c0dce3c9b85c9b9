"""What becomes of a run on real nodes of a cluster, whose actors pretend to judge: nodes that go and come, GPUs of models."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from unittest.mock import Mock

import fake_actor
import pytest
from fake_actor import FakeActor, OutdatedOnA100, fake_build, fake_toolchain
from listening import Listening

from harness.model.candidate import read_candidate
from harness.model.errors import DeviceBusy, HarnessError, InputError, NothingToRun
from harness.model.paths import REPOSITORY
from harness.runs.cluster import builds, dispatch, ray_executors, run
from harness.runs.cluster.link import Link, check_one_model, connected
from harness.runs.cluster.referees import Job, Referees

pytestmark = [pytest.mark.timeout(180), pytest.mark.slow]
SOURCE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, A, B):\n        return A\n"
SECOND_DRIVER = """
import sys

import ray

sys.path.append(sys.argv[1])
import fake_actor
from harness.runs.cluster import link, ray_executors

ray.cloudpickle.register_pickle_by_value(fake_actor)
ray_executors._UNTOLD_S = 0.5
with link.connected(sys.argv[2], model="H100"):
    here = link.Link("cuda", "H100", actor=fake_actor.FakeActor, build=fake_actor.fake_build)
    with ray_executors.RayExecutors(here) as places:
        while not places.open:
            for number, (kind, *words) in places.hear(0.5):
                print(*words if kind == "told" else ["open"], flush=True)
"""


@pytest.fixture(autouse=True)
def _pretended(monkeypatch):
    import ray

    ray.cloudpickle.register_pickle_by_value(fake_actor)
    monkeypatch.setattr(builds, "toolchain_here", fake_toolchain)
    monkeypatch.setattr(ray_executors, "_POLL_S", 0.3)


def link_to(model=None, actor=FakeActor) -> Link:
    return Link("cuda", model, actor=actor, build=fake_build)


@pytest.fixture
def run_of(request_for, tmp_path):
    """`run_of(sources, model, told)`: candidates of these sources by their names, judged on the GPUs of that model."""
    numbers = count()

    def judged(sources, model=None, told=None, actor=FakeActor, **how):
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        for name, source in sources.items():
            (folder / f"{name}.py").write_text(SOURCE + source)
        candidates = [read_candidate(folder / f"{name}.py") for name in sources]
        asked = request_for([], candidates=candidates, out_dir=folder / "results", **how)
        return run.run(asked, link_to(model, actor), told or Listening())

    return judged


def rows_of(result) -> dict:
    rows = [record for record in result.records if record.role == "candidate"]
    assert len({record.candidate for record in rows}) == len(rows)
    return {record.candidate: record for record in rows}


def test_there_is_a_table_for_each_model_and_one_model_can_be_chosen(nodes, run_of):
    sources = dict.fromkeys("abc", "")
    both = run_of(sources)
    assert {result.records[0].device_name for result in both} == {"H100", "A100"}
    assert len({result.csv_path for result in both}) == 2 and all(set(rows_of(each)) == set("abc") for each in both)
    [chosen] = run_of(sources, "A100")
    assert {record.device_name for record in chosen.records} == {"A100"}


def test_a_candidate_that_ends_every_judge_is_tried_twice_and_costs_no_other_its_row(nodes, run_of):
    told = Listening()
    [result] = run_of({"killer": "# kills", **dict.fromkeys("abcd", "")}, "H100", told)
    rows = rows_of(result)
    assert rows["killer"].reason_code.value == "device_lost" and "lost twice" in rows["killer"].reason
    assert {rows[name].status.value for name in "abcd"} == {"ok"}
    assert {name for _, name in told.outcomes} >= set("abcd")


def test_a_node_that_is_lost_costs_no_row_and_one_that_joins_takes_part(nodes, run_of, tmp_path):
    """The only node with a B200 is lost with the victim in hand; another one has joined by then."""
    there = [nodes.add("B200")]

    def lose(name, text):
        if name.endswith(" victim") and len(there) == 1:
            there.append(nodes.add("B200"))
            nodes.remove(there[0])

    told = Listening(lose)
    try:
        [result] = run_of({"victim": f"# first: {tmp_path / 'met'}", **dict.fromkeys("abc", "")}, "B200", told)
    finally:
        nodes.remove(there[-1])
    rows = rows_of(result)
    assert {row.status.value for row in rows.values()} == {"ok"} and len(rows) == 4
    assert "was lost" in rows["victim"].warnings
    assert len({device for device, _ in told.outcomes}) == 2


def test_what_was_built_on_a_node_that_is_gone_is_built_again(nodes, run_of, monkeypatch):
    import ray

    taken = []

    class Losing(builds.ClusterBuilds):
        def result(self, key):
            made = super().result(key)
            if getattr(key, "name", None) == "victim" and not taken:
                taken.append(key)
                return ray.remote(max_retries=0)(lambda: os._exit(1)).remote()
            return made

    monkeypatch.setattr(ray_executors, "ClusterBuilds", Losing)
    [result] = run_of({"victim": "", **dict.fromkeys("ab", "")}, "H100")
    rows = rows_of(result)
    assert taken and {row.status.value for row in rows.values()} == {"ok"}
    assert "a build was lost" in rows["victim"].warnings


def test_a_job_whose_build_is_gone_with_its_node_comes_again(nodes, monkeypatch):
    import ray

    taken = []

    class Losing(builds.ClusterBuilds):
        def result(self, key):
            if taken:
                return super().result(key)
            taken.append(key)
            return ray.remote(max_retries=0)(lambda: os._exit(1)).remote()

    monkeypatch.setattr(dispatch, "ClusterBuilds", Losing)
    with Referees(link=link_to("H100")) as judges:
        answers = judges.map(Job("tril_matmul", f"{SOURCE}# {number}", config="quick") for number in range(3))
        found = [answer.record for _, answer in answers]
    assert taken and [record.status.value for record in found] == ["ok"] * 3
    assert sum("a build was lost" in (record.warnings or "") for record in found) == 1


def test_referees_open_a_device_again_whose_judge_was_lost(nodes, tmp_path):
    source = SOURCE + "# kills"
    with Referees(link=link_to("H100")) as judges:
        lost = judges.evaluate("tril_matmul", source, config="quick")
        assert lost.record.reason_code.value == "device_lost" and lost.reward is None
        found = [answer.record.status.value for _, answer in judges.map(
            Job("tril_matmul", f"{SOURCE}# {number}", config="quick") for number in range(3)
        )]
        assert found == ["ok"] * 3 and judges.devices == 1


def test_a_node_with_another_version_of_this_software_is_left_out(nodes, run_of, monkeypatch):
    monkeypatch.setattr(ray_executors, "harness_hash", lambda: "another")
    told = Listening()
    with pytest.raises(HarnessError, match="has another version of this software"):
        run_of({"a": ""}, told=told)
    assert sum("is left out" in note for note in told.notes) == 2


def test_where_one_of_two_nodes_has_another_version_the_sound_one_judges_everything(nodes, run_of):
    told = Listening()
    [result] = run_of(dict.fromkeys("abc", ""), told=told, actor=OutdatedOnA100)
    rows = rows_of(result)
    assert {row.status.value for row in rows.values()} == {"ok"} and set(rows) == set("abc")
    assert {record.device_name for record in result.records} == {"H100"}
    [note] = [note for note in told.notes if "is left out" in note]
    assert "another version of this software (0.0, another)" in note


def test_referees_go_on_with_the_sound_one_of_two_nodes(nodes):
    with Referees(link=link_to(actor=OutdatedOnA100)) as judges:
        jobs = (Job("tril_matmul", f"{SOURCE}# {number}", config="quick") for number in range(4))
        assert {answer.record.device_name for _, answer in judges.map(jobs)} == {"H100"} and judges.devices == 1


def test_a_device_that_fails_after_a_row_costs_no_row_and_is_opened_again(nodes, run_of):
    told = Listening()
    [result] = run_of({"breaker": "# device fails", **dict.fromkeys("abc", "")}, "H100", told)
    rows = rows_of(result)
    assert {row.status.value for row in rows.values()} == {"ok"} and set(rows) == {"breaker", *"abc"}
    assert all(row.warnings is None for row in rows.values()), "nothing was in hand"
    assert sum("judges nothing more: it computes wrongly" in note for note in told.notes) == 1
    assert len({row.uuid for row in rows.values()}) == 2  # of the judges, one after the other


def test_referees_go_on_when_a_device_fails_after_an_answer(nodes):
    told = Listening()
    with Referees(link=link_to("H100"), progress=told) as judges:
        broken = judges.evaluate("tril_matmul", f"{SOURCE}# device fails", config="quick")
        assert broken.record.status.value == "ok" and broken.record.warnings is None
        jobs = (Job("tril_matmul", f"{SOURCE}# {number}", config="quick") for number in range(3))
        found = [answer.record for _, answer in judges.map(jobs)]
        assert [record.status.value for record in found] == ["ok"] * 3 and judges.devices == 1
        assert broken.record.uuid not in {record.uuid for record in found}
    assert sum("judges nothing more: it computes wrongly" in note for note in told.notes) == 1 and len(told.cleared) == 1


def test_a_second_driver_s_process_has_the_gpu_once_the_first_has_let_it_go(nodes):
    with ray_executors.RayExecutors(link_to("H100")) as first:
        open_one(first)
        words = [sys.executable, "-c", SECOND_DRIVER, str(Path(fake_actor.__file__).parent), nodes.cluster.address]
        second = subprocess.Popen(words, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
        said = second.stdout.readline()
        assert "held by other jobs" in said and second.poll() is None
    said, _ = second.communicate(timeout=120)
    assert (said, second.returncode) == ("open\n", 0)


def test_a_gpu_that_another_driver_has_is_waited_for_and_given_up_after_the_wait(nodes, monkeypatch):
    monkeypatch.setattr(ray_executors, "_UNTOLD_S", 0.5)
    with ray_executors.RayExecutors(link_to("H100")) as first:
        open_one(first)
        with ray_executors.RayExecutors(link_to("H100"), wait_s=1.5) as second:
            said = []
            with pytest.raises(DeviceBusy, match="other jobs of the cluster"):
                while True:
                    said += second.hear(0.5)
            assert any(kind == "told" and "held by other jobs" in words[0] for _, (kind, *words) in said)
            assert not second.open
    with ray_executors.RayExecutors(link_to("H100")) as third:
        open_one(third)


def open_one(found, seconds=60.0):
    """Hear until a place is open."""
    until = time.monotonic() + seconds
    while not found.open:
        assert time.monotonic() < until
        found.hear(0.5)


def test_a_cluster_without_such_a_gpu_says_so(nodes):
    with pytest.raises(NothingToRun, match="has no GPU of model B200"), connected("auto", model="B200"):
        pass


def test_a_cluster_says_which_models_it_has_and_one_that_was_chosen_is_alone(nodes):
    assert link_to().models == ["A100", "H100"] and link_to("H100").models == ["H100"]
    check_one_model(link_to("H100").models)
    with pytest.raises(InputError, match="A100, H100.*--accelerator A100"):
        check_one_model(link_to().models)


def test_what_is_no_cluster_is_said_in_a_sentence(nodes, monkeypatch):
    import ray

    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(NothingToRun, match="no Ray cluster answers at '127.0.0.1:1'"), connected("127.0.0.1:1", "cpu"):
        pass
    with pytest.raises(NothingToRun, match="HOST:PORT"), connected("ray://head:10001", "cpu"):
        pass
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # as a head leaves it that is gone
    with pytest.raises(NothingToRun, match=r"no Ray cluster answers at \S+:1, which is 'auto'"), connected("auto", "cpu"):
        pass
    monkeypatch.delenv("RAY_ADDRESS")
    # A port that answers, as that of a head does which wants a token.
    for error in (ConnectionError("Failed to connect"), ray.exceptions.AuthenticationError("no token")):
        monkeypatch.setattr("ray.init", Mock(side_effect=error))
        with pytest.raises(NothingToRun, match="may want a token: .* RAY_AUTH_MODE=token"), connected(nodes.cluster.address, "cpu"):
            pass
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NothingToRun, match=r"pip install '\.\[ray\]'"), connected("auto"):
        pass
