"""What a source gives away stands beside a finding, and beside a good row only where it touches the judge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.attribution.kernel_ownership import Provenance
from harness.audit.suspicions import suspicions_in, suspicions_of, with_suspicions
from harness.judge.judgement import Judgement
from harness.model.candidate import read_candidate
from harness.model.verdict import OK, ReasonCode, Status, Verdict

PATCHES = "import time\ntime.perf_counter = print\n"
LOOKS = "import gc\nfound = gc.get_objects()\n"


def test_a_rejected_candidate_is_told_where_to_look():
    verdict = Verdict(Status.REJECTED, ReasonCode.CLOCKS_DISAGREE, "the clocks disagree")
    told = with_suspicions(verdict, suspicions_in(PATCHES), Judgement())
    assert told.reason == "the clocks disagree; its line 2 replaces time.perf_counter"
    assert told.reason_code is ReasonCode.CLOCKS_DISAGREE


def test_a_good_row_is_noted_only_for_what_it_replaces():
    judgement = Judgement()
    assert with_suspicions(OK, suspicions_in(LOOKS), judgement) is OK
    assert judgement.warnings == []
    assert with_suspicions(OK, suspicions_in(PATCHES), judgement) is OK
    assert judgement.warnings == ["its line 2 replaces time.perf_counter: look at it"]


@pytest.mark.parametrize(("source", "kind", "taken"), [
    (LOOKS, "custom", "unknown"), (PATCHES, "mixed", "unknown"), (LOOKS, "library", "library"),
    ("import torch\n", "custom", "custom"), ("import torch\ntorch._inductor.config.max_autotune = True\n", "custom", "custom"),
])
def test_whose_kernels_ran_is_not_believed_of_a_source_that_reaches_into_what_reports_it(source, kind, taken):
    judgement = Judgement(provenance=Provenance(kind, 1.0))
    assert with_suspicions(OK, suspicions_in(source), judgement) is OK
    assert judgement.provenance.kind == taken
    assert any("has no rank" in each for each in judgement.warnings) == (taken != kind)


def test_an_ordinary_source_changes_no_verdict():
    verdict = Verdict(Status.INCORRECT, ReasonCode.WRONG_VALUES, "element [0, 0] is 1 where 2 is expected")
    assert with_suspicions(verdict, suspicions_in("import torch\n"), Judgement()) is verdict
    crashed = Verdict(Status.CRASHED, ReasonCode.SIGNAL, "killed by SIGSEGV")
    assert with_suspicions(crashed, suspicions_in(PATCHES), Judgement()) is crashed


REACHES = "import gc\nfound = gc.get_objects()\n"
MODEL = "import os, _parts\n\nclass ModelNew: pass\n"


@pytest.mark.parametrize("content", [
    REACHES.encode(), b"# coding: utf-7\nx = 1\n",
], ids=["reaches into its process", "is read otherwise by Python"])
def test_what_a_module_beside_it_reaches_into_is_held_against_the_candidate(tmp_path, content):
    (tmp_path / "mine.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "_parts.py").write_bytes(content)
    judgement = Judgement(provenance=Provenance("custom", 1.0))
    with_suspicions(OK, suspicions_of(read_candidate(tmp_path / "mine.py")), judgement)
    assert judgement.provenance.kind == "unknown"
    assert "of _parts.py" in judgement.warnings[0]


def test_a_module_beside_it_that_it_does_not_import_is_nobodys(tmp_path):
    (tmp_path / "mine.py").write_text("class ModelNew: pass\n", encoding="utf-8")
    (tmp_path / "_parts.py").write_text(REACHES, encoding="utf-8")
    assert suspicions_of(read_candidate(tmp_path / "mine.py")) == []


def test_the_files_of_another_projects_candidate_are_looked_at_too(tmp_path):
    (tmp_path / "mine.py").write_text("class ModelNew: pass\n", encoding="utf-8")
    files = ("parts.py", REACHES), ("kernel.cu", REACHES), ("coded.py", "# coding: utf-7\n")
    mine = replace(read_candidate(tmp_path / "mine.py"), files=files)
    assert [each.module for each in suspicions_of(mine)] == ["parts.py", "coded.py"]
