"""A small launch under a stand-in for the tool, behind the real sandbox; which findings hold; real findings on a GPU."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
import torch

from harness.model.verdict import ReasonCode, Status
from harness.sandbox.environment import scrubbed
from harness.tools import launch_files, watched_call
from harness.tools.launch_files import SmallLaunch
from harness.tools.sanitizer.compute_sanitizer import TOOLS, find_tool
from harness.tools.sanitizer.examination import Examiner, Uses, judge, trouble_of
from harness.tools.sanitizer.sanitizer_output import Report, read_report

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
MODEL = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor
    def forward(self, x, flag):
        {body}
"""


def candidate(tmp_path, body="return x * self.factor"):
    path = tmp_path / "candidate.py"
    path.write_text(MODEL.format(body=body), encoding="utf-8")
    return path


def launch(path, device="cpu"):
    return SmallLaunch(str(path), {}, 7, [3.0], [torch.arange(12.0).reshape(3, 4).t(), True], device)


def report(name):
    return read_report(name.partition("_")[0], (RECORDED / f"{name}.txt").read_text(encoding="utf-8"))


def test_a_launch_crosses_as_it_is(tmp_path):
    launch_files.write(tmp_path, launch("candidate.py"))
    read = launch_files.read(tmp_path)
    tensor, flag = read.inputs
    assert torch.equal(tensor, torch.arange(12.0).reshape(3, 4).t())
    assert tensor.stride() == (1, 4)
    assert flag is True
    assert (read.init, read.seed, read.path, read.device, read.manifest) == ([3.0], 7, "candidate.py", "cpu", {})


def test_the_program_under_the_tool_says_whether_it_launched(tmp_path, compile_calls):
    launch_files.write(tmp_path, launch(candidate(tmp_path)))
    assert watched_call.main(tmp_path) == 0
    assert (tmp_path / launch_files.OUTCOME).read_text() == '{"launched": true}'
    launch_files.write(tmp_path, launch(candidate(tmp_path, "raise ValueError('M must be a multiple of 64')")))
    assert watched_call.main(tmp_path) == 1
    assert "M must be a multiple of 64" in (tmp_path / launch_files.OUTCOME).read_text()


@pytest.mark.parametrize(
    ("name", "code"),
    [("memcheck_out_of_bounds", ReasonCode.MEMORY_ERROR), ("racecheck_error", ReasonCode.RACE),
     ("initcheck_uninitialized", ReasonCode.UNINITIALIZED), ("synccheck_divergent", ReasonCode.BARRIER)],
)
def test_a_finding_becomes_the_verdict_with_the_tools_words(name, code):
    verdict, doubted = judge(report(name), Uses("__global__ void plain() {}"))
    assert (verdict.status, verdict.reason_code) == (Status.INCORRECT, code)
    assert verdict.reason.startswith(f"compute-sanitizer {name.partition('_')[0]}: ")
    assert doubted == []


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        ("racecheck_error", Uses("mbarrier.init.shared.b64 [%0], %1;")),
        ("racecheck_error", Uses("bar.sync 1, 128;")),
        ("synccheck_divergent", Uses("#include <cooperative_groups.h>")),
        ("initcheck_uninitialized", Uses("cp.async.bulk.tensor.2d.global.shared::cta")),
        ("initcheck_uninitialized", Uses(library=True)),
        ("memcheck_misaligned_2022", Uses("cp.async.cg.shared.global [ %r1 ], [ %rd1 ], 0x10, %r2;")),
    ],
)
def test_what_the_tool_is_known_to_get_wrong_is_told_and_not_held_against_the_candidate(name, uses):
    verdict, doubted = judge(report(name), uses)
    assert verdict is None
    assert "not held against it, since it uses" in doubted[0]


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        ("racecheck_error", Uses("bar.sync \t0;\nbarrier.sync.aligned 0;", library=True)),
        ("synccheck_divergent", Uses("bar.sync 0;")),
        ("memcheck_out_of_bounds", Uses("cp.async.cg.shared.global")),
    ],
    ids=["__syncthreads is understood", "by synccheck too", "a write is no asynchronous read"],
)
def test_plain_barriers_and_writes_are_no_excuse(name, uses):
    assert judge(report(name), uses)[0] is not None


def test_a_finding_in_a_kernel_of_pytorchs_is_not_the_candidates():
    assert judge(report("initcheck_in_a_library"), Uses()) == (None, [])


@pytest.mark.parametrize(
    ("found", "words"),
    [(Report(complete=True), None), (Report(), "its report has no end"),
     (Report(complete=True, launched=False), "it saw no kernel"), (Report(troubles=("Error: x",)), "Error: x")],
)
def test_no_finding_is_a_clean_bill_only_from_a_tool_that_came_to_its_end(found, words):
    trouble = trouble_of(found)
    assert trouble == words or words in trouble


@pytest.fixture
def examiner(tmp_path):
    """`examiner(NAME…)` has the stand-in hand out these recorded reports."""

    def make(*names, limit_s=60.0):
        reports = tmp_path / "reports"
        reports.mkdir(exist_ok=True)
        for name in names:
            shutil.copy(RECORDED / f"{name}.txt", reports / f"{name.partition('_')[0]}.txt")
        program = tmp_path / "tool" / "compute-sanitizer"  # of the machine's a child sees the tool's own folder
        program.parent.mkdir(exist_ok=True)
        shutil.copy(HERE / "fake_tool.py", program.parent)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program.with_name("fake_tool.py")}" "$@"\n')
        program.chmod(0o755)
        return Examiner(str(program), scrubbed(os.environ, {"FAKE_REPORTS": str(reports)}), limit_s=limit_s)

    return make


def examined(examiner, path, **named):
    said = []
    return examiner.examine(launch(path), Uses(), said.append, **named), said


@pytest.mark.processes
def test_a_clean_candidate_goes_under_all_four_tools(examiner, tmp_path):
    found, said = examined(examiner(), candidate(tmp_path))
    assert (found.verdict, found.warnings, found.raised) == (None, (), None)
    assert said == [f"compute-sanitizer {tool}" for tool in TOOLS]


@pytest.mark.processes
def test_the_first_finding_ends_it(examiner, tmp_path):
    found, said = examined(examiner("racecheck_error", "synccheck_divergent"), candidate(tmp_path))
    assert found.verdict.reason_code is ReasonCode.RACE
    assert said[-1] == "compute-sanitizer racecheck"


@pytest.mark.processes
def test_a_candidate_that_raises_there_is_told_of_and_asked_no_more(examiner, tmp_path):
    found, said = examined(examiner(), candidate(tmp_path, "raise ValueError('M must be a multiple of 64')"))
    assert found.raised == "ValueError: M must be a multiple of 64"
    assert (found.verdict, found.warnings) == (None, ())
    assert len(said) == 1


@pytest.mark.processes
def test_a_candidate_that_hangs_there_costs_its_time_and_a_warning(examiner, tmp_path):
    found, _ = examined(examiner(limit_s=6.0), candidate(tmp_path, "import time; time.sleep(600)"))
    assert found.verdict is None
    assert found.warnings[0] == "compute-sanitizer memcheck could not look at it: it did not end within 6 s"


@pytest.mark.processes
def test_a_candidate_that_dies_there_leaves_a_warning_and_no_verdict(examiner, tmp_path):
    found, _ = examined(examiner(), candidate(tmp_path, "import os; os._exit(3)"))
    assert found.verdict is None
    assert found.warnings[0].endswith("its report has no end")


@pytest.mark.processes
def test_what_keeps_one_tool_from_working_is_said_once(examiner, tmp_path):
    found, said = examined(examiner("memcheck_unsupported_device"), candidate(tmp_path))
    assert len(found.warnings) == len(said) == 1
    assert "Device not supported" in found.warnings[0]


@pytest.mark.processes
def test_nothing_is_left_in_the_temporary_folder(examiner, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    examined(examiner("memcheck_out_of_bounds"), candidate(tmp_path))
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(find_tool() is None, reason="there is no compute-sanitizer here")
def test_the_real_tool_starts_behind_the_sandbox_and_sees_that_nothing_was_launched(tmp_path):
    examiner = Examiner(find_tool(), scrubbed(os.environ, {"CUDA_VISIBLE_DEVICES": ""}))
    found, _ = examined(examiner, candidate(tmp_path))
    assert found.verdict is None
    assert found.warnings
