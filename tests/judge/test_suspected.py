"""What a source gives away stands beside a finding, and beside a good row only where it touches the judge."""

from __future__ import annotations

import pytest

from harness.attribution.kernel_ownership import Provenance
from harness.audit.suspicions import with_suspicions
from harness.judge.judgement import Judgement
from harness.model.verdict import OK, ReasonCode, Status, Verdict

PATCHES = "import time\ntime.perf_counter = print\n"
LOOKS = "import gc\nfound = gc.get_objects()\n"


def test_a_rejected_candidate_is_told_where_to_look():
    verdict = Verdict(Status.REJECTED, ReasonCode.CLOCKS_DISAGREE, "the clocks disagree")
    told = with_suspicions(verdict, PATCHES, Judgement())
    assert told.reason == "the clocks disagree; its line 2 replaces time.perf_counter"
    assert told.reason_code is ReasonCode.CLOCKS_DISAGREE


def test_a_good_row_is_noted_only_for_what_it_replaces():
    judgement = Judgement()
    assert with_suspicions(OK, LOOKS, judgement) is OK
    assert judgement.warnings == []
    assert with_suspicions(OK, PATCHES, judgement) is OK
    assert judgement.warnings == ["its line 2 replaces time.perf_counter: look at it"]


@pytest.mark.parametrize(("source", "kind", "taken"), [
    (LOOKS, "custom", "unknown"), (PATCHES, "mixed", "unknown"), (LOOKS, "library", "library"),
    ("import torch\n", "custom", "custom"), ("import torch\ntorch._inductor.config.max_autotune = True\n", "custom", "custom"),
])
def test_whose_kernels_ran_is_not_believed_of_a_source_that_reaches_into_what_reports_it(source, kind, taken):
    judgement = Judgement(provenance=Provenance(kind, 1.0))
    assert with_suspicions(OK, source, judgement) is OK
    assert judgement.provenance.kind == taken
    assert any("has no rank" in each for each in judgement.warnings) == (taken != kind)


def test_an_ordinary_source_changes_no_verdict():
    verdict = Verdict(Status.INCORRECT, ReasonCode.WRONG_VALUES, "element [0, 0] is 1 where 2 is expected")
    assert with_suspicions(verdict, "import torch\n", Judgement()) is verdict
    crashed = Verdict(Status.CRASHED, ReasonCode.SIGNAL, "killed by SIGSEGV")
    assert with_suspicions(crashed, PATCHES, Judgement()) is crashed
