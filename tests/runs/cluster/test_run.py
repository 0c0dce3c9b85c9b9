"""A run on a cluster: the same verdicts as on one machine, every candidate once, whatever becomes of the nodes."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.candidate import read_candidate
from harness.model.errors import DeviceBusy, HarnessError, NothingToRun
from harness.model.places import REPOSITORY
from harness.runs.cluster import places, run
from harness.runs.cluster.link import Link, connected

CORPUS = REPOSITORY / "tests" / "adversarial"
NAMES = ("returns_none", "raises_in_forward", "no_model_new", "wrong_shape", "raises_in_init")
EXPECTED = {
    "returns_none": "incorrect", "raises_in_forward": "incorrect", "no_model_new": "build_failed",
    "wrong_shape": "incorrect", "raises_in_init": "incorrect",
}
COMPILED = '''import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor nothing(torch::Tensor a, torch::Tensor b) { return torch::zeros_like(a); }
"""
made = load_inline(name="nothing_at_all", cpp_sources=SOURCE, functions=["nothing"])


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return made.nothing(A, B)
'''

SLEEPER = """import time

import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        time.sleep(5)
"""

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


def own(result):
    return [record for record in result.records if record.role == "candidate"]


def statuses(result) -> dict[str, str]:
    return {record.candidate: record.status.value for record in own(result)}


def test_every_candidate_is_judged_once_with_the_verdict_that_one_machine_gives(nodes, request_for, tmp_path, listening):
    asked, path = request_for(NAMES), tmp_path / "compiled.py"
    path.write_text(COMPILED)
    told = listening()
    [result] = run.run(replace(asked, candidates=[*asked.candidates, read_candidate(path)]), Link("cpu"), told)
    assert statuses(result) == EXPECTED | {"compiled": "incorrect"}
    assert len(own(result)) == len(NAMES) + 1
    assert len({name.partition(" ")[0] for name, _ in told.stages}) == 2
    # What was compiled on one node was loaded, as it came, wherever it was judged.
    compiled = next(record for record in own(result) if record.candidate == "compiled")
    assert compiled.reason_code.value == "wrong_values" and compiled.build_s > 0
    lines = map(json.loads, result.csv_path.with_suffix(".jsonl").read_text().splitlines())
    paths = [line["samples"]["evidence"]["paths"] for line in lines if line["samples"].get("evidence")]
    assert paths and all(Path(each["problem"]).resolve() == (CORPUS / "tril_small.yaml").resolve() for each in paths)


def test_a_node_that_is_lost_costs_the_candidate_in_its_hand_and_one_that_joins_takes_part(nodes, request_for, tmp_path, listening):
    sleepers = [f"sleeper{number}" for number in range(6)]
    for name in sleepers:
        (tmp_path / f"{name}.py").write_text(SLEEPER)
    lost: list[str] = []

    def lose(name, text):
        label, _, candidate = name.partition(" ")
        if text == "checking" and not lost and candidate in sleepers:
            lost.append(candidate)
            seat = next(each for each in Link("cpu").seats() if each.label == label)
            nodes.remove(next(each for each in nodes.cluster.list_all_nodes() if each.node_id == seat.node))
            nodes.add()

    told = listening(lose)
    asked = request_for(NAMES)
    candidates = [*(read_candidate(tmp_path / f"{name}.py") for name in sleepers), *asked.candidates]
    [result] = run.run(replace(asked, candidates=candidates), Link("cpu"), told)
    [name] = lost
    assert len(own(result)) == len(candidates)
    assert statuses(result) == EXPECTED | dict.fromkeys(sleepers, "incorrect") | {name: "skipped"}
    row = next(record for record in own(result) if record.candidate == name)
    assert (row.reason_code.value, row.blame) == ("device_lost", "machine")
    assert len({device for device, candidate in told.outcomes if candidate in sleepers}) == 3


def test_two_runs_at_once_time_one_after_the_other_on_each_device(nodes, request_for, tmp_path, listening):
    """The second begins while the first times, and that goes on once the second has said that it waits."""
    results: dict[str, list] = {}
    threads: list[threading.Thread] = []

    def judge(name: str, told) -> None:
        results[name] = run.run(request_for(NAMES[:2], out_dir=tmp_path / name), Link("cpu"), told)

    def begin_another(name: str, text: str) -> None:
        if text != "timing" or threads:
            return
        threads.append(threading.Thread(target=judge, args=("other", other)))
        threads[0].start()
        until = time.monotonic() + 90
        while not waited(other) and time.monotonic() < until:
            time.sleep(0.1)

    def waited(told) -> bool:
        return any("is timing on this CPU: waiting" in note for note in told.notes)

    one, other = listening(begin_another), listening()
    judge("one", one)
    threads[0].join()
    for [result] in results.values():
        assert statuses(result) == {name: EXPECTED[name] for name in NAMES[:2]}
    assert waited(other) and not waited(one)


def test_a_driver_that_is_killed_loses_nothing_that_was_judged_and_resumes(nodes, tmp_path):
    words = [
        sys.executable, "run.py", str(CORPUS / "tril_small.yaml"), "--candidates", str(CORPUS / "form"), "--only", "wrong_*",
        "--skip", "wrong_device*", "--ray", nodes.cluster.address, "--device", "cpu", "--config", "quick", "--out",
        str(tmp_path / "results"),
    ]
    driver = subprocess.Popen(words, cwd=REPOSITORY, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for line in driver.stderr:
        if "incorrect: " in line:
            driver.send_signal(signal.SIGKILL)
            break
    driver.wait()
    [before] = (tmp_path / "results").rglob("*.csv")
    with before.open(newline="") as file:
        judged = {row["candidate"]: row["run_id"] for row in csv.DictReader(file) if row["role"] == "candidate"}
    assert judged
    again = subprocess.run([*words, "--resume", "--json"], cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0, again.stderr
    after = max((tmp_path / "results").rglob("*.csv"), key=lambda path: path.stat().st_mtime)
    with after.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["role"] == "candidate"]
    assert sorted(row["candidate"] for row in rows) == ["wrong_dtype", "wrong_layout", "wrong_shape"]
    assert {row["candidate"]: row["run_id"] for row in rows if row["candidate"] in judged} == judged


def test_a_node_with_another_version_of_this_software_is_refused(nodes, request_for, monkeypatch, listening):
    monkeypatch.setattr(places, "harness_hash", lambda: "another")
    told = listening()
    with pytest.raises(HarnessError, match="has another version of this software"):
        run.run(request_for(NAMES[:1]), Link("cpu"), told)
    assert sum("is left out" in note for note in told.notes) == 2


class Slow:
    """An actor that opens its device and says nothing more."""

    def __init__(self, program, device):
        pass

    def open(self):
        from harness.results.assembly import harness_hash

        return json.dumps({"version": "", "hash": harness_hash(), "pid": os.getpid()})

    def hear(self, timeout_s):
        time.sleep(0.1)
        return []

    def send(self, text, *builds):
        pass

    def end(self):
        pass


def open_within(found, seconds):
    """Hear until a place is open."""
    until = time.monotonic() + seconds
    while not found.open and time.monotonic() < until:
        found.hear(0.5)
    assert found.open


def test_a_gpu_that_another_driver_has_is_waited_for_and_given_up_after_the_wait(nodes, monkeypatch):
    monkeypatch.setattr(places, "_POLL_S", 0.2)
    monkeypatch.setattr(places, "_UNTOLD_S", 0.5)
    node = nodes.cluster.add_node(num_cpus=1, num_gpus=1, object_store_memory=80 << 20)
    link = Link("cuda", actor=Slow)
    try:
        assert len(link.seats()) == 1
        with places.RayPlaces(link) as first:
            open_within(first, 60)
            with places.RayPlaces(link, wait_s=3.0) as second:
                said = []
                with pytest.raises(DeviceBusy, match="other jobs of the cluster"):
                    while True:
                        said += second.hear(0.5)
                assert any(kind == "told" and "held by other jobs" in words[0] for _, (kind, *words) in said)
                assert not second.open
            first.end_all(list(first.open))
        with places.RayPlaces(link) as third:
            open_within(third, 60)
    finally:
        nodes.remove(node)


def test_what_is_no_cluster_is_said_in_a_sentence(monkeypatch):
    with pytest.raises(NothingToRun, match="no Ray cluster answers at '127.0.0.1:1'"), connected_anew(monkeypatch, "127.0.0.1:1"):
        pass
    with pytest.raises(NothingToRun, match="HOST:PORT"), connected_anew(monkeypatch, "ray://head:10001"):
        pass
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NothingToRun, match=r"pip install '\.\[ray\]'"), connected("auto"):
        pass


def connected_anew(monkeypatch, address: str):
    """`connected`, as in a process that is not connected yet."""
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    return connected(address, "cpu")


def test_a_cluster_without_a_gpu_says_so(nodes):
    with pytest.raises(NothingToRun, match="has no GPU"), connected("auto"):
        pass


def test_a_suite_has_a_problem_on_each_device(nodes, tmp_path):
    problems = [CORPUS / "tril_small.yaml", CORPUS / "transposed_small.yaml"]
    mine = tmp_path / "mine"
    for problem in problems:
        (mine / problem.stem).mkdir(parents=True)
        for name in ("wrong_shape", "no_model_new"):
            (mine / problem.stem / f"{name}.py").write_text((CORPUS / "form" / f"{name}.py").read_text())
    ended = subprocess.run(
        [sys.executable, "run.py", *map(str, problems), "--candidates", str(mine), "--ray", nodes.cluster.address, "--device",
         "cpu", "--config", "quick", "--out", str(tmp_path / "results"), "--json"],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=400,
    )
    assert ended.returncode == 0, ended.stderr
    found = {path.parent.parent.name for path in (tmp_path / "results").rglob("*.csv")}
    assert found == {"tril_small", "transposed_small"}
