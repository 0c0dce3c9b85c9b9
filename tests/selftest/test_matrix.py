"""The matrix: from what a case is, what the naive judge said and what the harness said, to one word for each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.results.record import Record
from harness.selftest import matrix
from harness.selftest.corpus import Case
from harness.selftest.matrix import NaiveResult, Row, outcome_of, row_of, totals

FAST = NaiveResult(correct=True, ms=1.0, eager_ms=20.0)
SAME = NaiveResult(correct=True, ms=10.0, eager_ms=10.1)
WRONG = NaiveResult(correct=False)


def case(name: str = "side_stream", group: str = "clock", **changes) -> Case:
    parts = {
        "sentence": "Returns early.", "mechanism": "x", "fools": "clock",
        "expected": ("rejected/clocks_disagree", "incorrect/wrong_values"),
        "devices": ("cpu", "cuda"), "kinds": (), "problem": "tril_matmul",
    }
    return Case(path=Path(f"{name}.py"), name=name, group=group, **{**parts, **changes})


def record(pair: str, kind: str | None = None, speedup: float | None = None, unvouched_us: float | None = None) -> Record:
    status, code = pair.split("/")
    return Record(
        run_id="r", utc="2026-01-01T00:00:00Z", problem="tril_small", sizes="M=1024", dtype="float32",
        candidate="side_stream", status=status, reason_code=code, reason="said why" if code else None, kind=kind,
        speedup=speedup, time_us=100.0 if speedup else None, unvouched_us=unvouched_us,
    )


IDLE = case("burns", expected=("rejected/clocks_disagree", "ok/"), kinds=("library",))
DECOY = case("decoy", "substance", expected=("ok/",), kinds=("library", "mixed"), fools="substance")
HONEST = case("fine", "honest", expected=("ok/",), fools="nothing")
FAULT = case("segfault", "machine", expected=("crashed/signal",), fools="nothing")
HARMLESS = case("kills_its_parent", "machine", expected=("ok/", "crashed/signal"), fools="nothing", kinds=("library",))


@pytest.mark.parametrize(
    ("which", "row", "outcome"),
    [
        (case(), record("rejected/clocks_disagree"), "caught"),
        (case(), record("incorrect/wrong_values"), "caught"),
        (case(), record("incorrect/not_finite"), "other verdict"),
        (case(), record("ok/", "custom"), "MISSED"),
        (case(), record("ok/", "library"), "MISSED"),
        (IDLE, record("ok/", "library", 1.002), "caught"),
        (IDLE, record("ok/", "library", 1.3), "MISSED"),
        (IDLE, record("ok/", "library", 1.3, 30.0), "caught"),
        (IDLE, record("ok/", "library", 1.3, 20.0), "MISSED"),
        (case(), None, "no row"),
        (case(), record("skipped/no_nvcc"), "not run"),
        (HONEST, record("checked/interpreted"), "not run"),
        (case(), record("skipped/device_lost"), "other verdict"),
        (case(), record("skipped/saved_meanwhile"), "other verdict"),
        (DECOY, record("ok/", "library"), "caught"),
        (DECOY, record("ok/", "unknown"), "other verdict"),
        (DECOY, record("ok/", "custom"), "MISSED"),
        (HONEST, record("ok/", "custom"), "right"),
        (HONEST, record("rejected/clocks_disagree"), "false alarm"),
        (HONEST, record("unsure/noisy"), "unsure"),
        (case(), record("unsure/noisy"), "unsure"),
        (HONEST, None, "no row"),
        (FAULT, record("crashed/signal"), "right"),
        (FAULT, record("crashed/exited"), "other verdict"),
        (FAULT, record("ok/", "custom"), "MISSED"),
        (HARMLESS, record("ok/", "library"), "right"),
        (HARMLESS, record("ok/", "custom"), "MISSED"),
        (HARMLESS, record("crashed/signal"), "right"),
    ],
)
def test_each_verdict_comes_to_one_word(which, row, outcome):
    assert outcome_of(which, row) == outcome


def test_what_was_to_be_skipped_is_right_when_it_is_skipped():
    assert outcome_of(case(expected=("skipped/no_gpu",), fools="nothing"), record("skipped/no_gpu")) == "right"


@pytest.mark.parametrize(
    ("naive", "fools", "fooled"),
    [
        (FAST, "clock", True), (SAME, "clock", False), (WRONG, "clock", False), (SAME, "answer", True),
        (SAME, "substance", True), (WRONG, "answer", False), (NaiveResult(raised="TypeError"), "answer", False),
        (NaiveResult(end="hung"), "clock", False), (FAST, "nothing", None),
    ],
)
def test_the_naive_judge_is_fooled_by_what_it_takes_at_its_word(naive, fools, fooled):
    assert naive.is_fooled(fools) is fooled


@pytest.mark.parametrize(
    ("naive", "text"),
    [
        (FAST, "correct, 20×"), (SAME, "correct, 1.01×"), (WRONG, "wrong"), (NaiveResult(), "no answer"),
        (NaiveResult(raised="TypeError", said="not a tensor"), "raised TypeError"),
        (NaiveResult(end="killed by SIGSEGV"), "killed by SIGSEGV"),
        (NaiveResult(correct=True, ms=-3.0, eager_ms=2.5), "correct, 1,000,000× and more"),
        (NaiveResult(correct=True, ms=0.0, eager_ms=0.0), "correct"),
        (NaiveResult(correct=True, ms=0.001, eager_ms=2.5, end="hung"), "correct, 2,500×, hung"),
    ],
)
def test_what_the_naive_judge_said_fits_a_cell(naive, text):
    assert naive.text == text


def rows() -> list[Row]:
    made = [
        row_of(case(), record("rejected/clocks_disagree"), FAST),
        row_of(case("lazy"), record("ok/", "custom"), SAME),
        row_of(DECOY, record("ok/", "library"), SAME),
        row_of(FAULT, record("crashed/signal"), NaiveResult(end="killed by SIGSEGV")),
        row_of(case("no_return", "form", fools="nothing"), record("incorrect/wrong_type"), NaiveResult(raised="E")),
        row_of(HONEST, record("ok/", "custom"), SAME),
        row_of(case("reuses", "honest", expected=("ok/",), fools="nothing"), record("rejected/clocks_disagree"), SAME),
        row_of(case("needs_nvcc", "clock"), record("skipped/no_nvcc"), None),
    ]
    return matrix.in_order(made)


def test_the_totals_name_everything_that_is_not_as_it_should_be():
    assert totals(rows()) == [
        "3 cheats: 2 caught, 1 MISSED (lazy)",
        "the naive judge took 2 of 3 at their word; not lazy",
        "2 faults: 1 right, 1 not as expected (no_return)",
        "the naive judge came through 1 of 2 of them",
        "2 honest controls: 1 passed, 1 false alarm (reuses)",
        "1 could not be run here: needs_nvcc",
    ]


def test_one_miss_or_one_false_alarm_is_enough_for_not_as_expected():
    good = [row for row in rows() if row.outcome in ("caught", "right", "not run")]
    assert matrix.all_as_expected(good)
    for row in rows():
        assert matrix.all_as_expected([*good, row]) == (row in good), row.name


def test_rows_stand_by_group_and_name():
    assert [(row.group, row.name) for row in rows()][:3] == [
        ("clock", "lazy"), ("clock", "needs_nvcc"), ("clock", "side_stream"),
    ]
    assert rows()[-1].group == "honest"


def test_markdown_has_a_line_for_each_case_and_no_stray_bars():
    odd = row_of(case("odd", sentence="Writes a|b and <!-- /matrix:cpu -->."), record("incorrect/wrong_values"), FAST)
    text = matrix.markdown([*rows(), odd], "### A machine")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 2 + len(rows()) + 1
    assert all(line.replace("\\|", "").count("|") == table[0].count("|") for line in table)
    assert "<!--" not in text
    assert text.startswith("### A machine\n\n- 4 cheats: 3 caught")
    assert "| `decoy` | Returns early. | substance | correct, 1.01× | ok, library | caught |" in text


@pytest.mark.parametrize(("said", "outcome", "lacks"), [
    ("ModuleNotFoundError: No module named 'numba'", "not run", "numba.cuda is not installed"),
    ("ModuleNotFoundError: No module named 'numba.cuda'", "not run", "numba.cuda is not installed"),
    ("ModuleNotFoundError: No module named 'numba.core'", "false alarm", ""),
    ("ModuleNotFoundError: No module named 'torchh'", "false alarm", ""),
    ("ImportError: Numba needs NumPy 2.2 or less", "false alarm", ""),
])
def test_a_case_whose_library_is_not_installed_is_not_run_and_the_totals_name_it(said, outcome, lacks):
    wants = case("by_numba", "honest", expected=("ok/",), fools="nothing", needs=("cupy", "numba.cuda"))
    row = row_of(wants, replace(record("build_failed/import_error"), reason=f"{said} (line 3)"), None)
    assert (row.outcome, row.lacks) == (outcome, lacks)
    if lacks:
        assert totals([row]) == ["1 could not be run here: by_numba (numba.cuda is not installed)"]
    assert row_of(HONEST, replace(record("build_failed/import_error"), reason=said), None).outcome == "false alarm"


def test_an_honest_case_of_a_library_that_the_naive_judge_cannot_use_either_shows_nothing():
    wants, raised = case("by_numba", "honest", expected=("ok/",), fools="nothing", needs=("numba.cuda",)), record("incorrect/raised")
    row = row_of(wants, raised, NaiveResult(raised="AttributeError"))
    assert totals([row]) == ["1 could not be run here: by_numba (numba.cuda raised AttributeError in the naive judge too)"]
    assert row_of(wants, raised, NaiveResult(correct=True)).outcome == "false alarm"
    assert row_of(HONEST, raised, NaiveResult(raised="AttributeError")).outcome == "false alarm"
