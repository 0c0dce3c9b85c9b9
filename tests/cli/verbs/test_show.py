"""`show` over stored results: what a person and a program get of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.model.verdict import ReasonCode, Status
from harness.reference.evidence import Evidence, Mistakes, Recipe, Spread, WrongElement
from harness.results.record import Record
from harness.results.writer import RunFiles

RESULTS = Path(__file__).resolve().parents[3] / "results"
ONE = Spread(1, 1, 0, 0, None)
MISTAKES = Mistakes(
    0, (1, 4), "float32", 8.0, 1, 4, (WrongElement((0, 3), 1.0, 2.0, 9e6),), ONE, ONE, Spread(4, 1, 3, 3, None),
    None, None, None, ("   @",),
)


@pytest.fixture
def results(tmp_path):
    files = RunFiles.create(tmp_path, "tril", "h200", "2026-05-01T12:00:00Z")
    record = Record(
        run_id="1", utc="2026-05-01T12:00:00Z", problem="tril", sizes="M=8", dtype="float32", candidate="naive",
        status=Status.INCORRECT, reason_code=ReasonCode.WRONG_VALUES, reason="element [0, 3] is 1 where 2 is expected",
    )
    evidence = Evidence(Recipe({"M": 4}, "as given", 1, 2), MISTAKES)
    kernel = {"kernel": "tril_kernel", "registers": 40, "spill_bytes": 16, "shared_bytes": 0, "stack_bytes": 0}
    files.append(record, {
        "evidence": evidence.to_json(), "build": {"kernels": [kernel]}, "kernels": [["tril_kernel", 12.5, "own", "extension"]],
        "errors": [{"sizes": "M=4", "family": "as given", "max_u": None, "allowed_max_u": 8.0}],
    })
    return tmp_path


def test_a_wrong_candidate_is_shown_with_where_it_is_wrong(results, capsys):
    assert main(["show", "naive", "--results", str(results)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("naive · tril · M=8")
    for words in ("incorrect (wrong_values)", "as given inf/8.0", "tril_kernel: 40 registers, 16 bytes spilled",
                  "own (extension): tril_kernel", "only element 3, the last of 4", "0 │   @│", "run.py reproduce"):
        assert words in out


@pytest.mark.parametrize(("kind", "said"), [("cpu", "1.00 ms by the worker's clock"), ("cuda", "1.00 ms by events")])
def test_a_call_is_told_by_the_clock_that_the_device_has(tmp_path, capsys, kind, said):
    files = RunFiles.create(tmp_path, "tril", "here", "2026-05-01T12:00:00Z")
    record = Record(
        run_id="1", utc="2026-05-01T12:00:00Z", problem="tril", sizes="M=8", dtype="float32", candidate="naive",
        status=Status.OK, device_kind=kind, time_us=1000.0,
    )
    files.append(record, {"clocks": {"events_us": 1000.0, "profiler_us": None, "wall_us": None}})
    assert main(["show", "naive", "--results", str(tmp_path)]) == 0
    assert said in capsys.readouterr().out


def test_each_architecture_has_its_line_and_constant_memory_and_warnings_are_not_lost(tmp_path, capsys):
    files = RunFiles.create(tmp_path, "tril", "cpu", "2026-05-01T12:00:00Z")
    kernel = {"kernel": "tril_kernel", "registers": 40, "spill_bytes": 0, "shared_bytes": 0, "stack_bytes": 0}
    kernels = [kernel | {"arch": "sm_80", "constant_bytes": 380}, kernel | {"arch": "sm_90a", "constant_bytes": None}]
    record = Record(
        run_id="1", utc="2026-05-01T12:00:00Z", problem="tril", sizes="M=8", dtype="float32", candidate="naive",
        status=Status.COMPILED, reason_code=ReasonCode.NO_GPU, reason="there is no GPU here", headers="slim",
        language="cuda", arch="sm_80+sm_90a",
    )
    warning = "naive.py:7: variable \"x\" was declared but never referenced"
    files.append(record, {"build": {"kernels": kernels + [kernel] * 6, "compiler_warnings": [warning]}})
    assert main(["show", "naive", "--results", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    figures = "40 registers, 0 bytes spilled, 0 bytes shared, 0 bytes stack"
    for words in ("sm_80+sm_90a · slim headers", f"for sm_80: {figures}, 380 bytes constant\n",
                  f"for sm_90a: {figures}\n", "and 2 more", f"warning: {warning}"):
        assert words in out


def test_json_has_the_record_and_the_evidence_under_their_own_keys(results, capsys):
    assert main(["show", "tril/naive", "--results", str(results), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert set(body) == {
        "csv", "others", "at_other_sizes", "record", "evidence", "errors", "kernels", "compiler", "clocks",
    }
    assert body["record"]["status"] == "incorrect"
    assert Evidence.from_json(body["evidence"]).mistakes == MISTAKES


@pytest.mark.parametrize("csv", sorted(RESULTS.rglob("*.csv")), ids=lambda path: "/".join(path.parts[-3:-1]))
def test_every_row_of_the_shipped_results_can_be_shown(csv, capsys):
    from harness.results.reader import read_records

    for record in read_records(csv):
        assert main(["show", str(csv), record.candidate]) == 0
        out = capsys.readouterr().out
        assert record.status.value in out
        assert "None" not in out


def test_a_misspelt_name_ends_with_2_and_the_nearest(results, capsys):
    assert main(["show", "naife", "--results", str(results)]) == 2
    assert "Did you mean 'naive'?" in capsys.readouterr().err


def test_a_call_with_gradients_has_the_time_of_each_pass(tmp_path, capsys):
    files = RunFiles.create(tmp_path, "tril", "here", "2026-05-01T12:00:00Z")
    record = Record(
        run_id="1", utc="2026-05-01T12:00:00Z", problem="tril", sizes="M=8", dtype="float32", candidate="naive",
        status=Status.OK, time_us=300.0, mode="forward_backward", forward_us=100.0, backward_us=200.0, baseline="eager",
        baseline_forward_us=150.0, baseline_backward_us=250.0,
    )
    files.append(record, {})
    assert main(["show", "naive", "--results", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "forward 100 µs (eager 150 µs) · backward 0.200 ms (eager 0.250 ms)" in out


def test_a_row_over_a_file_has_its_speedup_over_eager_beside_it(tmp_path, capsys):
    files = RunFiles.create(tmp_path, "tril", "here", "2026-05-01T12:00:00Z")
    record = Record(
        run_id="1", utc="2026-05-01T12:00:00Z", problem="tril", sizes="M=8", dtype="float32", candidate="naive",
        status=Status.OK, time_us=300.0, baseline="expert", baseline_hash="e" * 16, baseline_us=450.0, speedup=1.5,
        speedup_lo=1.4, speedup_hi=1.6, call="FASTER", eager_us=900.0, eager_speedup=3.0, eager_speedup_lo=2.9,
        eager_speedup_hi=3.1,
    )
    files.append(record, {})
    assert main(["show", "naive", "--results", str(tmp_path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "1.500× [1.400, 1.600] FASTER over expert (0.450 ms)" in out
    assert "3.000× [2.900, 3.100] over eager (0.900 ms)" in out
