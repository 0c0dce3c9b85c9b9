"""What `run` ends with, of one problem and of several, by what became of the rows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.cli.verbs import run, suite
from harness.results.record import Record
from harness.runs.suite.summary import OfModel, Outcome

OK = "ok"
CODES = {"harness_error": "exception", "incorrect": "wrong_values", "build_failed": "compile_error"}


def row(name, status, role="candidate"):
    times = {"time_us": 10.0, "speedup": 1.0, "speedup_lo": 0.9, "speedup_hi": 1.1} if status == OK else {}
    return Record(
        run_id="r", utc="2026-05-01T12:30:05Z", problem="p", sizes="", dtype="float32", candidate=name, role=role,
        status=status, reason_code=CODES.get(status, ""), device_kind="cpu", device_name="EPYC", torch="2", cuda="", **times,
    )


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("statuses", "code", "strictly"), [
    ({"eager": OK, "a": OK}, 0, 0), ({"eager": OK, "a": OK, "b": "incorrect"}, 0, 1),
    ({"eager": OK, "a": OK, "b": "harness_error"}, 1, 1), ({"eager": "harness_error", "a": OK}, 1, 1),
    ({"eager": OK, "a": "harness_error"}, 1, 1), ({"eager": OK, "a": "build_failed"}, 4, 4),
])
def test_a_row_that_this_software_failed_at_ends_the_command_with_1(statuses, code, strictly, strict, capsys):
    rows = tuple(row(name, status, "baseline" if name == "eager" else "candidate") for name, status in statuses.items())
    options = SimpleNamespace(json=True, strict=strict)
    wanted = strictly if strict else code
    assert run._reported(options, [SimpleNamespace(records=rows, csv_path=Path("p.csv"))]) == wanted
    assert suite._exit_code(options, [Outcome(Path("p.yaml"), "p", (OfModel(Path("p.csv"), rows),))]) == wanted
