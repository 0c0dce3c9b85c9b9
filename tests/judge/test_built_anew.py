"""A candidate that asks for extensions as it runs: how often it is begun anew, and what is said where they do not build."""

from __future__ import annotations

import pytest
from fake_worker import Script

from harness.build.missing_extension import WENT_ON
from harness.model.verdict import ReasonCode, Status, Verdict

CALL = {"kind": "load_inline", "arguments": {"name": "late"}, "texts": {}}
ASKING = Script(unbuilt=[CALL])
REFUSED = Verdict(Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR, "mine.py:7: expected ';'")
COMPILED = Verdict(Status.COMPILED, ReasonCode.NO_GPU, "for sm_90a")


@pytest.fixture
def asking_run(fake_run):
    """`asking_run(scripts, asked)`: (row of "mine", what was done for it) where its workers and its builds end so."""

    def make(scripts, asked=()):
        run = fake_run(scripts={"mine": scripts})
        run.build_pool.asked = list(asked)
        run.device_run.run([run.candidate("mine")])
        return run.rows["mine"], [each for each in run.log if each in ("mine begins", "mine asked for late")]

    return make


def test_one_that_asks_for_nothing_is_played_once(asking_run):
    row, done = asking_run([Script()])
    assert row.status is Status.OK and done == ["mine begins"]


def test_once_what_it_asked_for_is_built_it_is_begun_anew(asking_run):
    row, done = asking_run([ASKING, Script()])
    assert row.status is Status.OK and done == ["mine begins", "mine asked for late", "mine begins"]


def test_one_that_asks_for_others_each_time_is_rejected_in_the_end(asking_run):
    row, done = asking_run([ASKING])
    assert row.reason_code is ReasonCode.BUILD_CHANGED
    assert done == ["mine begins", "mine asked for late"] * 3 + ["mine begins"]


@pytest.mark.parametrize(("ends", "status"), [(ASKING, Status.BUILD_FAILED), (Script(), Status.OK)])
def test_where_it_does_not_build_the_candidate_may_go_on_without_it(asking_run, ends, status):
    row, _ = asking_run([ASKING, ends], [REFUSED, REFUSED, REFUSED])
    assert row.status is status and (WENT_ON in (row.warnings or "")) == (status is Status.OK)


def test_where_it_was_only_compiled_or_took_too_long_that_is_the_verdict(asking_run):
    row, done = asking_run([ASKING], [COMPILED])
    assert (row.status, row.reason) == (Status.COMPILED, "for sm_90a") and done == ["mine begins", "mine asked for late"]


def test_a_baseline_may_ask_for_nothing(fake_run):
    run = fake_run(scripts={"eager": ASKING})
    run.device_run.run([])
    assert run.rows["eager"].reason_code is ReasonCode.BUILD_CHANGED
    assert not any("asked for" in each for each in run.log)
