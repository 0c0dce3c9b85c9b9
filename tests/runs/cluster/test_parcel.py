"""What crosses to another machine as text is there what it was here."""

from __future__ import annotations

import hashlib
import json
import queue
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.build.product import Build, BuiltExtension
from harness.judge.work_queue import Job
from harness.model.candidate import find_candidates, read_baseline, read_candidate
from harness.model.errors import HarnessError
from harness.model.paths import REPOSITORY
from harness.model.problem import load_problem, problems_by_name
from harness.model.settings import load_settings
from harness.model.verdict import ReasonCode, Status, Verdict
from harness.runs.cluster import parcel
from harness.runs.cluster.actor import RefereeActor
from harness.runs.cluster.parcel import (
    Shelf, Unpacker, packed_build, packed_candidate, packed_problem, settings_of, text_of,
)
from harness.runs.fleet.device_judge import Assignment, Delivery

OF_ITS_PLACE = ("path", "reference_path", "candidates_dir", "more_candidates", "baseline")
SOURCE = "import torch\nfrom mine_parts import half\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


def crossed(packed):
    return json.loads(json.dumps(packed))


@pytest.mark.parametrize("name", sorted(problems_by_name()))
def test_a_problem_and_its_candidates_are_the_same_but_for_their_place(name, tmp_path):
    problem, shelf = load_problem(problems_by_name()[name]), Shelf(tmp_path)
    there = shelf.problem(crossed(packed_problem(problem)))
    for each in fields(problem):
        if each.name not in OF_ITS_PLACE:
            assert getattr(there, each.name) == getattr(problem, each.name), each.name
    assert there.reference_path.read_text(encoding="utf-8") == problem.reference_source
    for candidate in find_candidates(problem.candidate_folders):
        found = shelf.candidate(crossed(packed_candidate(candidate)))
        assert replace(found, path=candidate.path) == candidate
        assert found.fault or found.is_as_read


def test_what_a_candidate_imports_from_beside_it_goes_with_it_and_another_one_does_not(tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    (here / "mine.py").write_text(SOURCE)
    (here / "mine_parts.py").write_text("half = 0.5\n")
    (here / "other.py").write_text("class ModelNew: pass\n")
    found = Shelf(tmp_path / "there").candidate(crossed(packed_candidate(read_candidate(here / "mine.py"))))
    assert sorted(path.name for path in found.path.parent.iterdir()) == ["mine.py", "mine_parts.py"]


def test_what_is_too_much_to_go_with_a_candidate_is_its_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(parcel, "MOST_BESIDE_BYTES", 3)
    (tmp_path / "mine.py").write_text(SOURCE)
    (tmp_path / "mine_parts.py").write_text("half = 0.5\n")
    packed = packed_candidate(read_candidate(tmp_path / "mine.py"))
    assert "too much to go with it" in packed["fault"] and packed["beside"] == {}


def test_a_name_that_leads_out_of_the_candidate_s_folder_is_refused(tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE)
    packed = packed_candidate(read_candidate(tmp_path / "mine.py"))
    with pytest.raises(HarnessError, match="is no name of a file"):
        Shelf(tmp_path / "there").candidate({**packed, "beside": {"../../up.py": ""}})


def test_settings_keep_their_hash():
    settings = load_settings("rigorous")
    assert settings_of(crossed(asdict(settings))) == settings


@pytest.fixture
def build(tmp_path):
    path = tmp_path / "0-made.so"
    path.write_bytes(b"\x7fELF")
    extension = BuiltExtension("key", "made", path, hashlib.sha256(b"\x7fELF").hexdigest(), True)
    return Build(None, (extension,), seconds=3.0, cached=True, arch="sm_90a")


def test_a_build_comes_with_its_files_and_another_content_is_refused(build, tmp_path):
    values, files = packed_build(build)
    found = Shelf(tmp_path / "there").build(crossed(values), files)
    assert found.extensions[0].path.read_bytes() == b"\x7fELF" and found.extensions[0].path.is_relative_to(tmp_path / "there")
    assert replace(found, extensions=build.extensions) == build
    with pytest.raises(HarnessError, match="another content"):
        Shelf(tmp_path / "there").build(crossed(values), {"0-made.so": b"\x7fELG"})
    failed = Build(Verdict(Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR, "no"))
    assert Shelf(tmp_path / "there").build(*packed_build(failed)) == failed


def test_an_assignment_and_a_delivery_are_said_on_the_node_as_they_were_meant(build, tmp_path):
    own = read_baseline(REPOSITORY / "candidates" / "tril_matmul" / "torch_masked.py") if (
        REPOSITORY / "candidates" / "tril_matmul" / "torch_masked.py").is_file() else None
    problem = replace(load_problem(problems_by_name()["tril_matmul"]), baseline=own)
    unpacker = Unpacker(Shelf(tmp_path / "there"))
    said = Assignment(problem, load_settings("quick"), "cuda:0", "2026-01-01", "run", True, ("9.0",), ("energy",), 5.0)
    there = unpacker.said(*text_of(said))
    assert replace(there, problem=problem) == said
    (tmp_path / "mine.py").write_text(SOURCE.replace("from mine_parts import half\n", ""))
    candidate = read_candidate(tmp_path / "mine.py")
    delivery = Delivery(Job(3, 4), {3: "eager", 4: candidate}, {candidate.path: ("text", "files")}, True)
    text, builds = text_of(delivery)
    assert builds == [("text", "files")]
    values, files = packed_build(build)
    found = unpacker.said(text, [[json.dumps(values), files]])
    assert (found.job, found.quiet, found.entries[3]) == (Job(3, 4), True, "eager")
    assert list(found.builds) == [found.entries[4].path]
    assert isinstance(found.entries[4].path, Path) and found.entries[4].source == candidate.source
    assert unpacker.said(*text_of("quiet")) == "quiet" and unpacker.said(*text_of(None)) is None


def test_a_job_and_its_build_reach_the_judge_by_the_call_that_waits_for_its_answer(build, tmp_path):
    """The actor with its own unpacker, without a judge behind it."""
    actor, told = object.__new__(RefereeActor), []
    actor._said, actor._unpacker = queue.SimpleQueue(), Unpacker(Shelf(tmp_path / "there"))
    actor._referee = SimpleNamespace(pipe=SimpleNamespace(send=told.append))
    actor._said.put(("answer", 7, None, (1, "no"), None))
    (tmp_path / "mine.py").write_text(SOURCE.replace("from mine_parts import half\n", ""))
    problem = load_problem(problems_by_name()["tril_matmul"])
    text = json.dumps({
        "kind": "job", "number": 7, "problem": packed_problem(problem), "settings": asdict(load_settings("quick")),
        "candidate": packed_candidate(read_candidate(tmp_path / "mine.py")), "check_only": False, "budget_s": None,
        "built": True, "quiet": True,
    })
    values, files = packed_build(build)
    assert json.loads(actor.hear(1.0, text, [json.dumps(values), files])[0])[:2] == ["answer", 7]
    [(kind, job)] = told
    [found] = job["builds"].values()
    assert (kind, job["number"], list(job["builds"])) == ("job", 7, [job["candidate"].path])
    assert found.extensions[0].path.read_bytes() == b"\x7fELF"


def test_a_node_keeps_the_last_candidates_and_builds_and_every_baseline(build, tmp_path, monkeypatch):
    monkeypatch.setattr(parcel, "MOST_FOLDERS", 3)
    here, shelf = tmp_path / "here", Shelf(tmp_path / "there")
    here.mkdir()
    paths = []
    for number in range(6):
        (here / "mine.py").write_text(f"{SOURCE.replace('from mine_parts import half', '')}# {number}\n")
        read = read_baseline if number == 0 else read_candidate
        paths.append(shelf.candidate(crossed(packed_candidate(read(here / "mine.py")))).path)
    shelf.build(*packed_build(build))
    assert [path.is_file() for path in paths] == [True, False, False, False, True, True]
