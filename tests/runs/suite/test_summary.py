"""The summary of a suite: one of each model among the devices, and the plain one where there is one."""

from __future__ import annotations

from pathlib import Path

from harness.cli.flags import understood
from harness.cli.verbs import suite
from harness.results.record import Record
from harness.runs.suite.summary import OfModel, Outcome, summary_json, summary_text


def row(device: str, speedup: float, name: str = "mine", torch: str = "2.13.0") -> Record:
    return Record(
        run_id="r", utc="2026-05-01T12:30:05Z", problem="p", sizes="", dtype="float32", candidate=name, status="ok",
        kind="custom", rank=1, time_us=10.0 / speedup, speedup=speedup, speedup_lo=speedup * 0.99,
        speedup_hi=speedup * 1.01, device_kind="cuda", device_name=device, uuid=f"GPU-{device}{torch}", torch=torch,
        cuda="13.0",
    )


def outcome(*rows: Record, problem: str = "p") -> Outcome:
    paths = (Path(f"{each.device_name}-{each.torch}.csv") for each in rows)
    return Outcome(Path(f"{problem}.yaml"), problem, tuple(OfModel(path, (each,)) for path, each in zip(paths, rows)))


def test_each_model_has_its_own_lines_and_scores():
    text = summary_text([outcome(row("H100", 3.0), row("A100", 0.9))], None)
    assert "1 problem · H100" in text and "1 problem · A100" in text
    assert "KernelBench scores · H100" in text and "KernelBench scores · A100" in text
    tables = text.split("1 problem · A100")
    assert "3.00" in tables[0] and "0.90" not in tables[0]
    scores = {each["device_name"]: each["every_candidate"]["fast_p"]["1"] for each in
              summary_json([outcome(row("H100", 3.0), row("A100", 0.9))])["scores"]}
    assert scores == {"H100": 1.0, "A100": 0.0}


def test_one_model_is_not_named_in_the_title():
    text = summary_text([outcome(row("H100", 3.0)), Outcome(Path("q.yaml"), "q", fault="it does not load")], None)
    assert text.startswith("2 problems\n\n") and "did not run" in text and "q: it does not load" in text


def test_two_versions_of_pytorch_on_one_model_have_a_summary_each():
    found = [outcome(row("H100", 3.0), row("H100", 2.0, torch="2.12.0")), outcome(row("H100", 1.5), problem="q")]
    names = [each["device_name"] for each in summary_json(found)["scores"]]
    assert names == ["H100 with PyTorch 2.13.0 (CUDA 13.0)", "H100 with PyTorch 2.12.0 (CUDA 13.0)"]


def test_a_problem_shows_a_table_for_each_model_with_its_own_file(capsys):
    suite._show(understood(["suite", "p.yaml"]), outcome(row("H100", 3.0), row("A100", 0.9)))
    tables = capsys.readouterr().out.split("\n\np · ")
    assert len(tables) == 2
    for device, table in zip(("H100", "A100"), tables):
        assert f"{device}-2.13.0.csv" in table and table.count("mine") >= 1
    problem = summary_json([outcome(row("H100", 3.0), row("A100", 0.9))])["problems"][0]
    assert problem["csv"] == "H100-2.13.0.csv" and problem["csvs"] == ["H100-2.13.0.csv", "A100-2.13.0.csv"]
