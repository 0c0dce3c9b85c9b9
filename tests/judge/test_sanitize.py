"""Which launch goes under compute-sanitizer, and what becomes of the judgement."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.attribution.kernel_ownership import Provenance, TracedKernel
from harness.judge.judgement import Judgement, Prepared
from harness.judge.sanitize import sanitize, small_reference
from harness.model.verdict import ReasonCode, Status, Verdict
from harness.tools.sanitizer.examination import Examination

RACE = Verdict(Status.INCORRECT, ReasonCode.RACE, "compute-sanitizer racecheck: a race")


class Reference:
    init, mode = [3], "forward"
    init_by_name = by_name = False

    def __init__(self, **sizes):
        self.sizes = sizes

    def draw(self):
        return SimpleNamespace(arguments=lambda: [self.sizes])


@dataclass
class ScriptedExaminer:
    """Answers with the examinations it was given, one for each launch, and keeps what it was asked."""

    answers: list
    asked: list = field(default_factory=list)

    def examine(self, launch, uses, tell, triton_cache):
        self.asked.append((launch, uses))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


TIMED, SMALL = Reference(M=4096), Reference(M=31)
OWN, LIBRARY = TracedKernel("tile", 9.0, "own", "extension"), TracedKernel("nvjet_x", 1.0, "library")


def prepared(path="candidate.py", triton_cache=None):
    return Prepared("x", str(path), {"key": {}}, (), triton_cache, "fp32", "cuda")


def judged(*kernels, verdict=None):
    judgement = Judgement(provenance=Provenance("custom", 1.0, kernels), speedup=object(), word="FASTER")
    judgement.verdict = verdict or judgement.verdict
    return judgement


def put_under(judgement, *answers, references=(TIMED, Reference(M=1), SMALL), **named):
    examiner = ScriptedExaminer(list(answers))
    sanitize(examiner, prepared(**named), references, 7, judgement, lambda text: None)
    return examiner.asked


@pytest.mark.parametrize(
    ("checks", "chosen"),
    [
        ([{"M": 1}, {"M": 31}, {"M": 257}], {"M": 31}),
        ([{"M": 1000}, {"M": 16}, {"M": 15}], {"M": 16}),
        ([{"M": 1, "K": 999}, {"M": 31, "K": 33}, {"M": 16, "K": 64}], {"M": 31, "K": 33}),
        ([{"M": 1}, {"M": 15}], {"M": 4096}), ([], {"M": 4096}), ([{}], {"M": 4096}),
    ],
)
def test_the_smallest_check_size_of_sixteen_and_more_is_taken_or_else_the_timed(checks, chosen):
    assert small_reference([TIMED, *(Reference(**sizes) for sizes in checks)]).sizes == chosen


def test_a_finding_makes_the_row_incorrect_and_takes_its_time_away():
    judgement = judged(OWN)
    ((launch, uses),) = put_under(judgement, Examination(RACE, ("a warning",)))
    assert judgement.verdict == RACE
    assert judgement.speedup is judgement.word is None
    assert judgement.warnings == ["a warning"]
    assert (launch.inputs, launch.init, launch.seed, launch.manifest) == ([{"M": 31}], [3], 7, {"key": {}})
    assert not uses.library


def test_a_clean_candidate_keeps_its_verdict_and_its_time():
    judgement = judged(OWN, LIBRARY)
    ((_, uses),) = put_under(judgement, Examination())
    assert judgement.verdict.status is Status.OK
    assert judgement.word == "FASTER"
    assert uses.library


@pytest.mark.parametrize(
    "judgement",
    [judged(OWN, verdict=RACE), judged(LIBRARY), judged(), Judgement()],
    ids=["not ok", "a library's kernels alone", "no kernels", "not traced"],
)
def test_what_is_not_ok_or_has_no_kernel_of_its_own_is_not_put_under_it(judgement):
    assert put_under(judgement) == []


def test_at_a_size_that_the_candidate_refuses_the_timed_one_is_tried():
    judgement = judged(OWN)
    asked = put_under(judgement, Examination(raised="ValueError: M must be a multiple of 64"), Examination(RACE))
    assert [launch.inputs for launch, _ in asked] == [[{"M": 31}], [{"M": 4096}]]
    assert judgement.verdict == RACE


def test_a_candidate_that_launches_at_no_size_there_is_told_of_and_keeps_its_verdict():
    judgement = judged(OWN)
    put_under(judgement, Examination(raised="RuntimeError: no"), Examination(raised="RuntimeError: no"))
    assert judgement.verdict.status is Status.OK
    assert judgement.warnings == ["compute-sanitizer could not look at it: under it, it raised RuntimeError: no"]


def test_a_process_that_cannot_be_started_costs_a_warning():
    judgement = judged(OWN)
    put_under(judgement, OSError("no more processes"))
    assert judgement.warnings == ["compute-sanitizer could not be started: no more processes"]


def test_what_the_candidate_uses_is_looked_up_in_its_source_and_in_tritons_ptx(tmp_path):
    source, cache = tmp_path / "candidate.py", tmp_path / "triton"
    source.write_text("import triton\n")
    (cache / "HASH").mkdir(parents=True)
    (cache / "HASH" / "tile.ptx").write_text("mbarrier.init.shared.b64 [%r1], 1;\n")
    ((_, uses),) = put_under(judged(OWN), Examination(), path=Path(source), triton_cache=cache)
    assert "import triton" in uses.text
    assert "mbarrier.init" in uses.text
