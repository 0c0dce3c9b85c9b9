"""Which record is meant by a word or two, and what is said when none is."""

from __future__ import annotations

import json

import pytest

from harness.model.errors import InputError
from harness.model.verdict import Status
from harness.reference.evidence import Evidence, Recipe
from harness.results.lookup import find_record
from harness.results.record import Record
from harness.results.samples import evidence_in, read_samples
from harness.results.writer import RunFiles


def record(name, problem="tril", utc="2026-05-01T12:00:00Z", **fields) -> Record:
    plain = {"run_id": utc, "sizes": "M=8", "status": Status.OK}
    return Record(utc=utc, problem=problem, dtype="float32", candidate=name, **(plain | fields))


@pytest.fixture
def results(tmp_path):
    """Two problems; "tiled" in both, and twice in "tril"."""
    folder = tmp_path / "results"

    def write(problem, utc, *names):
        files = RunFiles.create(folder, problem, "h200", utc)
        for name in names:
            files.append(record(name, problem, utc), {"kernels": [utc]})

    write("tril", "2026-05-01T12:00:00Z", "naive", "tiled")
    write("tril", "2026-05-02T12:00:00Z", "tiled")
    write("transposed", "2026-05-03T12:00:00Z", "tiled", "split_k")
    return folder


def test_the_newest_record_of_a_name_is_meant_and_the_others_are_named(results):
    found = find_record(["tiled"], results)
    assert (found.record.problem, len(found.others)) == ("transposed", 2)
    assert found.others[0].name == "20260502T120000Z.csv"


def test_a_problem_before_the_name_chooses_among_problems(results):
    assert find_record(["tril/tiled"], results).record.utc == "2026-05-02T12:00:00Z"
    assert find_record(["candidates/tril/tiled.py"], results).record.problem == "tril"


def test_a_file_counts_by_its_folder_only_where_that_is_a_problem(results, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "elsewhere" / "naive.py"
    file.touch()
    assert find_record([str(file)], results).record.candidate == "naive"


def test_a_csv_and_a_name_are_exact(results):
    csv = results / "tril" / "h200" / "20260501T120000Z.csv"
    assert find_record([str(csv), "tiled"], results).path == csv
    alone = results / "tril" / "h200" / "20260502T120000Z.csv"
    assert find_record([str(alone)], results).record.candidate == "tiled"
    assert find_record([str(results / "tril"), "tiled"], results).record.utc == "2026-05-02T12:00:00Z"


@pytest.mark.parametrize(("words", "said"), [
    (["tilde"], "Did you mean 'tiled'"),
    (["transposed/naive"], "there are results of 'naive' for tril, none for 'transposed'. Type tril/naive"),
    (["a", "b", "c"], "3 words"),
    (["nowhere", "tiled"], "no such folder"),
    (["missing.csv"], "no such file"),
])
def test_what_is_not_there_is_told_with_the_nearest_that_is(results, words, said):
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        find_record(words, results)


def test_a_csv_of_several_needs_a_name_and_the_right_one(results):
    csv = str(results / "tril" / "h200" / "20260501T120000Z.csv")
    with pytest.raises(InputError, match="naive and tiled"):
        find_record([csv], results)
    with pytest.raises(InputError, match="Did you mean 'naive'"):
        find_record([csv, "naife"], results)


def test_no_results_at_all_and_no_folder_are_told_apart(tmp_path):
    with pytest.raises(InputError, match="no such folder of results"):
        find_record(["tiled"], tmp_path / "results")
    with pytest.raises(InputError, match="no results below"):
        find_record(["tiled"], tmp_path)


def test_a_file_of_another_tool_beside_the_results_is_passed_over(results):
    (results / "tiled.csv").write_text("candidate,ms\ntiled,3\n")
    (results / "empty.csv").write_text("")
    assert find_record(["tiled"], results).record.problem == "transposed"


def test_samples_are_those_of_the_record_and_a_broken_line_costs_nothing(results):
    found = find_record(["tril/tiled"], results)
    assert read_samples(found.path, found.record) == {"kernels": ["2026-05-02T12:00:00Z"]}
    beside = found.path.with_suffix(".jsonl")
    beside.write_text("{broken\n[1]\n" + beside.read_text())
    assert read_samples(found.path, found.record)
    beside.unlink()
    assert read_samples(found.path, found.record) == {}


def test_evidence_of_another_shape_is_none():
    evidence = Evidence(Recipe({"M": 8}, "signs", 2**62, 3, (1, 2), 3, "ab"))
    assert evidence_in({"evidence": json.loads(json.dumps(evidence.to_json()))}) == evidence
    for body in (None, {}, {"recipe": 1}, {"recipe": {"seed": "x", "before": []}}, [1]):
        assert evidence_in({"evidence": body}) is None


def test_of_a_run_at_several_sizes_the_first_is_meant_unless_another_is_not_ok(tmp_path):
    files = RunFiles.create(tmp_path, "tril", "h200", "2026-05-01T12:00:00Z")
    for number, sizes in enumerate(("M=4096", "M=256")):
        files.append(record("tiled", sizes=sizes, run_id=str(number)), {"kernels": [sizes]})
        bad = {"status": Status.INCORRECT, "reason_code": "wrong_values"} if sizes == "M=256" else {}
        files.append(record("wrong_below", sizes=sizes, run_id=str(number), **bad))
    found = find_record(["tiled"], tmp_path)
    assert [found.record.sizes, *(each.sizes for each in found.at_other_sizes)] == ["M=4096", "M=256"]
    assert read_samples(found.path, found.at_other_sizes[0]) == {"kernels": ["M=256"]}
    assert find_record([str(files.csv_path), "wrong_below"], tmp_path).record.sizes == "M=256"
