"""What of a problem is left to judge on which model, and whose rows are whose afterwards; nothing is run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.cli.flags import understood
from harness.device.identity import DeviceIdentity
from harness.judge.run import RunRequest
from harness.model.candidate import read_candidate
from harness.model.paths import REPOSITORY
from harness.model.problem import load_problem
from harness.model.settings import load_settings
from harness.results.assembly import harness_hash
from harness.results.record import Record
from harness.results.writer import RunFiles, device_slug
from harness.runs.suite.problems import Loaded
from harness.runs.suite.sequence import Suite
from harness.runs.suite.summary import Outcome

FIXTURES = REPOSITORY / "tests/fixtures/kernelbench"
PROBLEM = load_problem(FIXTURES / "linear_relu.py", FIXTURES / "linear_relu_candidates")
CANDIDATES = [read_candidate(FIXTURES / f"linear_relu_candidates/{name}.py") for name in ("correct", "forgets_bias")]
SETTINGS = load_settings("quick")
H100 = DeviceIdentity("cuda", "H100", memory_bytes=8, driver="580", cuda="13.0", torch="2.13.0")
A100, OLDER = replace(H100, name="A100"), replace(H100, torch="2.12.0")


@pytest.fixture
def earlier(tmp_path):
    """`earlier(device, *names)`: a run on `device` with a row of each of these candidates."""

    def write(device, *names):
        files = RunFiles.create(tmp_path, PROBLEM.name, device_slug(device.name, device.kind), "2030-05-01T12:00:00Z")
        for each in CANDIDATES:
            if each.name in names:
                files.append(Record(
                    run_id=device.name + device.torch, utc="2030-05-01T12:00:00Z", problem=PROBLEM.name,
                    problem_hash=PROBLEM.hash, sizes="", dtype=PROBLEM.dtype, mode=PROBLEM.mode,
                    candidate=each.name, source_hash=each.source_hash, status="incorrect", reason_code="wrong_values",
                    reason="so", harness_hash=harness_hash(), config_hash=SETTINGS.hash, device_kind=device.kind,
                    device_name=device.name, memory_bytes=device.memory_bytes, driver=device.driver, cuda=device.cuda,
                    torch=device.torch, uuid=f"GPU-{device.name}",
                ))
        return files.csv_path

    return write


@pytest.fixture
def begun(tmp_path):
    """`begun(*devices)`: what a suite on all models makes of the problem, with the rows of these devices."""

    def begin(*devices, on_all=True):
        options = understood(["suite", str(PROBLEM.path), "--out", str(tmp_path)])
        suite = Suite(options, SETTINGS, devices, on_all)
        return suite.begun(Loaded(PROBLEM.path, PROBLEM), CANDIDATES)

    return begin


def left_on(asked, device):
    return [each.name for each in RunRequest(**asked.fields).left_for(device).candidates]


def test_a_model_judges_what_it_has_no_row_of_whatever_another_has(earlier, begun):
    earlier(H100, "correct", "forgets_bias")
    earlier(A100, "correct")
    asked = begun(H100, A100)
    assert left_on(asked, H100) == [] and left_on(asked, A100) == ["forgets_bias"]
    assert [each.record.device_name for each in RunRequest(**asked.fields).left_for(A100).kept] == ["A100"]
    # One that nobody knew of at the start has no rows, and judges all.
    assert left_on(asked, replace(H100, name="B200")) == ["correct", "forgets_bias"]


def test_rows_of_another_pytorch_are_those_of_another_model(earlier, begun):
    earlier(H100, "correct", "forgets_bias")
    asked = begun(H100, OLDER)
    assert left_on(asked, OLDER) == ["correct", "forgets_bias"]
    assert not RunRequest(**asked.fields).left_for(OLDER).kept


def test_a_problem_that_every_model_has_whole_is_not_run_and_each_has_its_file(earlier, begun):
    paths = [earlier(each, "correct", "forgets_bias") for each in (H100, A100)]
    found = begun(H100, A100)
    assert isinstance(found, Outcome) and found.kept == 4
    assert [(each.device_name, each.path, each.kept) for each in found.results] == [
        ("H100", paths[0], 2), ("A100", paths[1], 2),
    ]
    assert [[record.device_name for record in each.records] for each in found.results] == [["H100"] * 2, ["A100"] * 2]


def test_where_one_device_judges_a_problem_a_row_of_any_is_kept(earlier, begun):
    earlier(H100, "correct")
    asked = begun(H100, A100, on_all=False)
    assert [each.name for each in asked.fields["candidates"]] == ["forgets_bias"]


def test_without_earlier_rows_everything_is_judged(begun):
    for asked in (begun(), begun(on_all=False), begun(H100, A100)):
        assert left_on(asked, H100) == ["correct", "forgets_bias"]


def test_the_rows_of_several_files_are_told_apart_by_the_model_that_judged(earlier, begun):
    earlier(H100, "correct")
    asked = begun(H100, A100)
    written = earlier(A100, "correct", "forgets_bias")
    found = asked.outcome([written])
    assert [(each.device_name, each.path == written, each.kept, len(each.records)) for each in found.results] == [
        ("A100", True, 0, 2), ("H100", False, 1, 1),
    ]
