"""The rows of the adversarial corpus: each case gets the verdict and the kind that its header expects."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.selftest.corpus import read_corpus
from harness.results.ranking import vouched_speedup
from harness.selftest.matrix import GAINED


REPOSITORY = Path(__file__).resolve().parents[3]
CHEATS = ("clock", "answer", "substance")
DOUBTED = "unsure/noisy"


def verdict(row: dict[str, str]) -> str:
    return f"{row['status']}/{row['reason_code']}"


def test_every_known_miss_is_a_case_and_is_named_on_the_page(known_misses):
    page = (REPOSITORY / "docs" / "design" / "adversarial.md").read_text(encoding="utf-8").partition("<!-- matrix")[0]
    assert set(known_misses) <= {case.name for case in read_corpus(REPOSITORY / "tests" / "adversarial")}
    assert [name for name in known_misses if f"`{name}`" not in page] == []


def test_a_case_gets_the_verdict_and_the_kind_that_its_header_expects(
    judged, device, case, known_misses, may_be_doubted
):
    row = judged.rows[case.name]
    lacking = [name for name in case.needs if find_spec(name.partition(".")[0]) is None]
    if lacking:
        assert verdict(row) == "build_failed/import_error", row["reason"]
        pytest.skip(f"{case.name} needs {' and '.join(lacking)}, not installed here")
    if row["status"] == "ok" and device in known_misses.get(case.name, ()):
        pytest.xfail(f"{case.name} is not caught on {device}: docs/design/adversarial.md says why")
    doubts = [DOUBTED] if device == "cpu" and case.group in may_be_doubted else []
    assert verdict(row) in {*case.expected, *doubts}, row["reason"]
    if case.kinds and row["status"] == "ok":
        assert row["kind"] in case.kinds
    if case.fools == "clock" and row["status"] == "ok":  # what it tried may have come to nothing
        assert vouched_speedup(*(float(row[name] or 0) for name in ("speedup", "time_us", "unvouched_us"))) < GAINED


def test_no_cheat_is_ok_as_a_custom_kernel_and_every_honest_control_is_ok(judged, device, known_misses):
    known = {case.name for case in judged.cases if device in known_misses.get(case.name, ())}
    passed = {name for name, row in judged.rows.items() if row["status"] == "ok"} - known
    assert not [case.name for case in judged.named("answer") if case.name in passed]
    assert not [
        case.name for case in judged.named(*CHEATS)
        if case.name in passed and (judged.rows[case.name]["kind"] == "custom" or judged.rows[case.name]["rank"])
    ]
    assert not [case.name for case in judged.named("honest") if case.name not in passed]


def test_every_candidate_has_its_row_and_every_row_its_reason(judged):
    assert set(judged.rows) - {"eager", "tiled_shared"} == {case.name for case in judged.cases}
    for name, row in judged.rows.items():
        assert (row["status"] == "ok") == (row["reason_code"] == ""), name
        assert row["status"] == "ok" or 10 <= len(row["reason"]) < 1000, name
        assert "Traceback" not in row["reason"], name
        assert "\n" not in row["reason"] or row["status"] == "build_failed", name


def test_only_what_was_checked_and_right_has_a_time(judged):
    for name, row in judged.rows.items():
        assert (row["time_us"] != "") == (row["status"] == "ok"), name
        if row["status"] == "ok":
            assert float(row["time_us"]) > 0
            assert float(row["speedup_lo"]) <= float(row["speedup"]) <= float(row["speedup_hi"])


@pytest.mark.lanes("honest", devices=["cpu"])
def test_a_right_result_of_pytorchs_own_kernels_stands_without_a_rank(judged):
    row = judged.rows["torch_masked"]
    assert row["kind"] == "library"
    assert row["rank"] == ""


@pytest.mark.lanes("answer")
def test_lost_precision_is_named_by_its_class(judged, device):
    assert "bf16-class" in judged.rows["bf16"]["reason"]
    tf32 = "tf32_rounded_cpu" if device == "cpu" else "tf32_cuda"
    assert "tf32-class" in judged.rows[tf32]["reason"]


@pytest.mark.lanes("transposed", devices=["cuda:0"])
def test_precision_lost_in_a_transposed_product_is_named_by_its_class(judged):
    assert "tf32-class" in judged.rows["transposed_tf32_cuda"]["reason"]
    assert "bf16-class" in judged.rows["transposed_bf16"]["reason"]


@pytest.mark.lanes("breaking", devices=["cpu"])
def test_the_place_of_a_mistake_is_the_candidates_own_line(judged):
    rows = judged.rows
    assert "raises_in_forward.py:15" in rows["raises_in_forward"]["reason"]
    assert "raises_in_init.py:16" in rows["raises_in_init"]["reason"]
    assert "syntax_error.py:14" in rows["syntax_error"]["reason"]
    assert "cpp_syntax_error_cpu.py:19" in rows["cpp_syntax_error_cpu"]["reason"]
    assert "ModelNeww" in rows["no_model_new"]["reason"]


@pytest.mark.lanes("transposed", devices=["cuda:0"])
def test_an_honest_sequential_sum_over_8192_passes_where_eager_splits_it(judged):
    row = judged.rows["tiled_shared"]
    assert verdict(row) == "ok/", row["reason"]
    assert row["kind"] == "custom"
    assert row["rank"] == "1"
