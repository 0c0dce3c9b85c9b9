"""Speedups over a file of the user's: known speedups over eager in, quotients with their intervals out."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.candidate import OwnBaseline
from harness.model.verdict import CODES_OF
from harness.results.own_baseline import fault_of, is_own_baseline, over_own_baseline, speedup_over_eager

CODE = {status.value: min(codes) for status, codes in CODES_OF.items() if codes}
EXPERT = OwnBaseline("expert", Path("expert.py"), "", "e" * 16, "torch")


@pytest.fixture
def measured(make_record):
    """`measured(speedup, share)`: a row over eager whose interval reaches by `share` of a logarithm to either side."""

    def make(speedup: float, share: float = 0.01, **changes):
        ends = {"speedup_lo": speedup * math.exp(-share), "speedup_hi": speedup * math.exp(share)}
        figures = {"speedup": speedup, **ends, "time_us": 2000.0 / speedup, "baseline": "eager", "baseline_us": 2000.0,
                   "baseline_mean_us": 1990.0, "baseline_processes": 4, "call": "FASTER", "confidence": 0.99}
        return make_record(**(figures | changes))

    return make


@pytest.fixture
def judged(measured):
    """The baseline's own row: twice as fast as eager."""
    row = measured(2.0, 0.03, candidate="expert", role="baseline", source_hash=EXPERT.source_hash)
    return over_own_baseline(row, EXPERT, None)


def test_the_speedup_is_a_quotient_and_its_interval_adds_the_squares_of_both(measured, judged):
    row = over_own_baseline(measured(3.0, 0.04), EXPERT, judged)
    assert row.speedup == pytest.approx(1.5)
    assert math.log(row.speedup_hi / row.speedup) == pytest.approx(0.05)
    assert math.log(row.speedup / row.speedup_lo) == pytest.approx(0.05)
    assert (row.baseline, row.baseline_hash, row.baseline_us, row.call) == ("expert", "e" * 16, 1000.0, "FASTER")


def test_the_speedup_over_eager_stays_beside_it_and_what_is_told_of_eager_is_not_told_of_the_file(measured, judged):
    before = measured(3.0, 0.04)
    row = over_own_baseline(before, EXPERT, judged)
    assert (row.eager_us, row.eager_speedup) == (2000.0, 3.0)
    assert (row.eager_speedup_lo, row.eager_speedup_hi) == (before.speedup_lo, before.speedup_hi)
    assert row.baseline_mean_us is None and row.baseline_processes is None
    assert speedup_over_eager(row) == speedup_over_eager(before)


@pytest.mark.parametrize(
    ("speedup", "share", "word"),
    [(2.2, 0.001, "FASTER"), (1.8, 0.001, "SLOWER"), (2.05, 0.001, "UNSURE"), (2.2, 0.2, "UNSURE")],
)
def test_the_word_follows_from_the_interval_of_both(measured, judged, speedup, share, word):
    assert over_own_baseline(measured(speedup, share), EXPERT, judged).call == word


@pytest.mark.parametrize(("control_apart", "word"), [(0.0, "FASTER"), (0.3, "FASTER"), (0.9, "UNSURE")])
def test_nothing_is_called_by_less_than_the_control_is_off_itself(measured, judged, control_apart, word):
    row = over_own_baseline(measured(3.0, 0.01), EXPERT, judged, control_apart)
    assert row.speedup == pytest.approx(1.5, rel=0.01) and row.call == word


def test_eager_is_as_much_slower_as_the_file_is_faster(measured, judged):
    eager = over_own_baseline(measured(1.0, candidate="eager", role="baseline"), EXPERT, judged)
    assert eager.speedup == pytest.approx(0.5) and eager.call == "SLOWER"


def test_the_file_has_a_speedup_over_eager_and_none_over_itself(judged):
    assert is_own_baseline(judged) and judged.speedup is None and judged.call is None
    assert judged.eager_speedup == 2.0 and judged.baseline == "expert"


def test_over_a_file_that_is_not_ok_no_row_has_a_speedup_and_a_note_says_so(measured, judged):
    wrong = replace(judged, status="incorrect", reason_code="wrong_values", reason="element [0] is 1\nand more")
    row = over_own_baseline(measured(3.0, warnings="a note"), EXPERT, wrong)
    assert row.speedup is None and row.speedup_lo is None and row.call is None and row.eager_speedup == 3.0
    assert row.warnings == "a note\nno speedup over expert: that baseline is incorrect"


def test_a_row_without_a_time_is_known_to_be_of_that_baseline(make_record, judged):
    row = over_own_baseline(make_record(status="build_failed", reason_code=CODE["build_failed"]), EXPERT, judged)
    assert (row.baseline, row.baseline_hash, row.speedup, row.warnings) == ("expert", "e" * 16, None, None)


@pytest.mark.parametrize(
    ("status", "exit_code"),
    [("incorrect", 2), ("imprecise", 2), ("rejected", 2), ("build_failed", 2), ("crashed", 2), ("timed_out", 2),
     ("unsure", 4), ("checked", 4), ("compiled", 4), ("skipped", 4), ("harness_error", 1)],
)
def test_the_exit_code_says_whether_the_file_the_machine_or_this_software_is_at_fault(
    make_record, status, exit_code
):
    row = make_record(candidate="expert", role="baseline", source_hash="e" * 16, status=status,
                      reason_code=CODE[status], reason="so it is\nat length")
    fault = fault_of([row])
    assert fault.exit_code == exit_code
    assert str(fault) == f"the baseline expert is {status}, so no row has a speedup over it: so it is"


def test_no_fault_is_found_in_a_run_over_eager_whose_eager_row_failed(make_record, judged):
    failed = make_record(candidate="eager", role="baseline", status="unsure", reason_code="noisy")
    assert fault_of([failed]) is None and fault_of([judged]) is None
