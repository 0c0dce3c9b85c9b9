"""Runs side by side, compared whole: stored CSVs in, text out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.cli.verbs.compare import compare, drawn
from harness.model.errors import InputError

HERE = Path(__file__).resolve().parents[1]


@pytest.fixture
def results(tmp_path, monkeypatch) -> Path:
    """The stored runs below results/, as a run would have put them, seen from the folder above."""
    places = {
        "h200_may_1": "nvidia-h200/20260501T123005Z",
        "h200_may_8": "nvidia-h200/20260508T090000Z",
        "h100_may_2": "nvidia-h100-80gb-hbm3/20260502T090000Z",
        "cpu_may_3": "cpu-amd-epyc-9654/20260503T080000Z",
    }
    for name, place in places.items():
        path = tmp_path / f"results/tril_matmul/{place}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / f"results/samples/{name}.csv", path)
    monkeypatch.chdir(tmp_path)
    return Path("results/tril_matmul")


def text_of(paths, width: int = 140) -> str:
    return drawn(compare(paths), "table", width)


def golden(name: str) -> str:
    return (HERE / "report/golden" / name).read_text(encoding="utf-8")


def test_the_whole_comparison_of_two_gpus(results):
    text = text_of([results / "nvidia-h200/20260501T123005Z.csv", results / "nvidia-h100-80gb-hbm3"])
    assert text + "\n" == golden("compare_two_gpus.txt")


def test_the_whole_comparison_of_one_gpu_last_week_and_today(results):
    text = text_of(sorted((results / "nvidia-h200").glob("*.csv")))
    assert text + "\n" == golden("compare_last_week.txt")


def test_the_whole_comparison_of_a_folder_with_a_gpu_and_a_cpu_in_a_narrow_terminal(results):
    assert text_of([results], width=100) + "\n" == golden("compare_folder.txt")


def test_times_and_changes_of_different_devices_are_never_shown(results):
    text = text_of([results / "nvidia-h200", results / "nvidia-h100-80gb-hbm3"])
    assert "µs" not in text and " ms" not in text and "against" not in text


def test_runs_with_nothing_in_common_say_so(results):
    text = text_of([results / "nvidia-h200", results / "cpu-amd-epyc-9654"])
    assert "No two of these runs share a problem with its sizes and dtype: nothing to compare." in text
    assert "tril_matmul · M=512 · float32: only in B" in text


def test_one_run_alone_is_refused_with_the_older_one_to_compare_it_with(results):
    with pytest.raises(InputError) as caught:
        compare([results / "nvidia-h200"])
    assert str(caught.value) == (
        "results/tril_matmul/nvidia-h200: there is one run here (NVIDIA H200, 2026-05-08T09:00:00Z), so "
        "nothing to compare. `python run.py compare results/tril_matmul/nvidia-h200/20260501T123005Z.csv "
        "results/tril_matmul/nvidia-h200/20260508T090000Z.csv` compares two runs on one device"
    )


def test_a_file_that_was_passed_over_is_not_the_one_to_compare_with(tmp_path):
    for name, content in (("a", (HERE / "results/samples/h200_may_1.csv").read_text()), ("b", "x,y\n1,2\n"), ("c", "")):
        (tmp_path / f"{name}.csv").write_text(content)
    with pytest.raises(InputError) as caught:
        compare([tmp_path])
    assert "Name a second CSV" in str(caught.value) and "b.csv" in str(caught.value)
    assert "; and 1 more" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "no such file"), ("", "the file is empty"), ("a,b\n1,2\n", "not a file of results")],
)
def test_a_file_that_cannot_be_used_is_one_sentence(results, content, said):
    path = Path("other.csv")
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=said):
        compare([results / "nvidia-h200", path])


def test_nothing_named_is_refused():
    with pytest.raises(InputError, match="name two CSVs or a folder"):
        compare([])


def test_a_way_of_joining_that_is_none_is_refused_with_what_was_meant(results):
    with pytest.raises(InputError, match="Did you mean 'name'"):
        compare([results], by="nam")


def test_edited_candidates_are_compared_when_joined_by_name(results):
    found = compare(sorted((results / "nvidia-h200").glob("*.csv")), by="name")
    [pair] = found.pairs
    verdicts = {row.name: change.verdict for row, change in pair.changes}
    assert verdicts["tiled_shared"] == "FASTER" and found.joined.cases[0].unmatched[0].name == "warp_reduction"


def test_the_whole_comparison_as_markdown(results):
    text = drawn(compare(sorted((results / "nvidia-h200").glob("*.csv"))), "markdown", None)
    assert text + "\n" == golden("compare_last_week.md")


def test_many_runs_of_one_gpu_are_counted_and_only_the_last_is_drawn(results):
    first = results / "nvidia-h200/20260501T123005Z.csv"
    for day in range(2, 9):
        text = first.read_text(encoding="utf-8").replace("2026-05-01T", f"2026-06-0{day}T")
        (first.parent / f"2026060{day}T090000Z.csv").write_text(text, encoding="utf-8")
    text = text_of([first, results / "nvidia-h200/202606*.csv"])
    assert "none of 6 runs between A and the last differs from A" in text
    assert text.count("against A, both on") == 1 and "H against A" in text
