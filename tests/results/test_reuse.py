"""Which rows of earlier runs still hold, and which have to be made again."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from harness.device.identity import DeviceIdentity
from harness.model.candidate import OwnBaseline, read_candidate
from harness.model.problem import PROBLEMS_DIR, at_sizes, load_problem
from harness.model.settings import load_settings
from harness.results.assembly import harness_hash
from harness.results.reuse import kept_at_every_size, kept_rows
from harness.results.writer import RunFiles, csv_text

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures/kernelbench"
PROBLEM = load_problem(FIXTURES / "linear_relu.py", FIXTURES / "linear_relu_candidates")
CANDIDATE = read_candidate(FIXTURES / "linear_relu_candidates/correct.py")
SETTINGS = load_settings("quick")
DEVICE = DeviceIdentity(
    "cuda", "NVIDIA H200", uuid="GPU-1", memory_bytes=8, driver="580", cuda="13.0", torch="2.11.0"
)


@pytest.fixture
def earlier(tmp_path, make_record):
    """Writes a run with one row, as this very software on this very device would have, but for `changes`."""

    def write(utc: str = "2026-05-01T12:00:00Z", samples=None, **changes) -> Path:
        files = RunFiles.create(tmp_path, PROBLEM.name, "nvidia-h200", utc)
        files.append(make_record(**({
            "utc": utc, "problem": PROBLEM.name, "problem_hash": PROBLEM.hash, "sizes": "", "mode": "forward",
            "candidate": CANDIDATE.name, "source_hash": CANDIDATE.source_hash, "harness_hash": harness_hash(),
            "config_hash": SETTINGS.hash, "uuid": "GPU-1", "memory_bytes": 8, "driver": "580", "cuda": "13.0",
            "torch": "2.11.0",
        } | changes)), samples)
        return files.csv_path

    return write


def kept(folder, problem=PROBLEM, candidate=CANDIDATE, settings=SETTINGS, device=DEVICE):
    return kept_rows(folder, problem, [candidate], settings, device)


def test_a_row_for_which_nothing_has_changed_is_kept(tmp_path, earlier):
    path = earlier()
    assert {name: row.csv_path for name, row in kept(tmp_path).items()} == {"correct": path}


@pytest.mark.parametrize(
    "change",
    [{"source_hash": "ffff"}, {"problem_hash": "ffff"}, {"harness_hash": "ffff"}, {"harness_hash": None},
     {"config_hash": "ffff"}, {"uuid": "GPU-2"}, {"torch": "2.13.0"}, {"driver": "590"}, {"sizes": "M=2"},
     {"candidate": "another_name"}, {"role": "baseline"}],
    ids=str,
)
def test_a_row_for_which_anything_has_changed_is_not(tmp_path, earlier, change):
    earlier(**change)
    assert kept(tmp_path) == {}


@pytest.mark.parametrize(
    ("status", "code", "is_kept"),
    [("incorrect", "wrong_values", True), ("crashed", "signal", True), ("build_failed", "compile_error", True),
     ("unsure", "noisy", False), ("skipped", "no_gpu", False), ("compiled", "no_gpu", False),
     ("checked", "interpreted", False)],
)
def test_verdicts_are_kept_and_what_another_try_may_change_is_not(tmp_path, earlier, status, code, is_kept):
    earlier(status=status, reason_code=code, reason="so it was")
    assert bool(kept(tmp_path)) is is_kept


def test_other_values_of_settings_of_the_same_name_are_a_change(tmp_path, earlier):
    earlier()
    assert kept(tmp_path, settings=replace(SETTINGS, budget_s=9.0)) == {}
    assert "correct" in kept(tmp_path, settings=replace(SETTINGS, name="renamed"))


def test_a_file_beside_the_candidate_that_was_put_there_since_is_a_change_and_another_candidates_is_none(tmp_path, earlier):
    candidates = tmp_path / "candidates"
    candidates.mkdir()
    (candidates / "correct.py").write_text(CANDIDATE.path.read_text())
    candidate = read_candidate(candidates / "correct.py")
    earlier("2026-05-01T12:00:00+00:00")
    assert "correct" in kept(tmp_path, candidate=candidate)
    (candidates / "other.py").write_text(CANDIDATE.path.read_text())
    assert "correct" in kept(tmp_path, candidate=candidate)
    (candidates / "_tiles.py").write_text("TILE = 32")
    os.utime(candidates / "_tiles.py", (0, 0))
    assert kept(tmp_path, candidate=candidate) == {}
    earlier(datetime.now(timezone.utc).replace(year=2099).isoformat(timespec="seconds"))
    assert "correct" in kept(tmp_path, candidate=candidate)
    (candidates / "_tiles.py").unlink()
    folder = candidates / "include"
    folder.mkdir()
    (folder / "tiles.cuh").write_text("// 32")
    assert "correct" in kept(tmp_path, candidate=candidate)


def test_of_several_rows_the_newest_is_kept(tmp_path, earlier):
    earlier()
    newest = earlier("2026-05-08T12:00:00Z")
    assert kept(tmp_path)["correct"].csv_path == newest


def test_a_strange_file_among_the_results_is_passed_over(tmp_path, earlier):
    path = earlier()
    path.with_name("zzz.csv").write_text("a,b\n1,2\n")
    assert "correct" in kept(tmp_path)


def test_raw_samples_come_along_and_may_be_gone(tmp_path, earlier):
    path = earlier(samples={"errors": [1.0]})
    assert kept(tmp_path)["correct"].samples() == {"errors": [1.0]}
    newest = earlier("2026-05-08T12:00:00Z")
    newest.with_suffix(".jsonl").write_text('{"run_id": 3}\nno json')
    assert kept(tmp_path)["correct"].csv_path == newest != path and kept(tmp_path)["correct"].samples() == {}


def test_the_hash_of_the_harness_is_sixteen_digits_of_its_source():
    assert len(harness_hash()) == 16 and int(harness_hash(), 16) >= 0
    assert csv_text([]).splitlines()[0].count("_hash") == 5  # problem, settings, source, baseline, harness


def test_of_several_sizes_a_candidate_is_kept_with_its_rows_at_all_of_them_or_not_at_all(tmp_path, earlier):
    problem = at_sizes(replace(load_problem(PROBLEMS_DIR / "tril_matmul.yaml"), name=PROBLEM.name), ["M=256", "M=64"])

    def kept_now():
        return kept_at_every_size(tmp_path, problem, [CANDIDATE], SETTINGS, [DEVICE])

    earlier(problem_hash=problem.hash, sizes="M=256")
    assert kept_now() == {}
    earlier(utc="2026-05-02T12:00:00Z", problem_hash=problem.hash, sizes="M=64")
    assert [each.record.sizes for each in kept_now()["correct"]] == ["M=256", "M=64"]
    assert kept_at_every_size(tmp_path, problem, [CANDIDATE], SETTINGS, []) == {}


@pytest.mark.parametrize(("now", "then", "is_kept"), [
    (None, None, True), ("expert", "expert", True), (None, "expert", False), ("expert", None, False),
    ("expert", "other", False),
])
def test_a_row_is_kept_only_over_the_baseline_that_is_asked_for(tmp_path, earlier, now, then, is_kept):
    sources = {"expert": "e" * 16, "other": "0" * 16}
    earlier(time_us=1.0, speedup=1.0, baseline=then or "eager", baseline_hash=sources.get(then))
    baseline = now and OwnBaseline("expert", Path("expert.py"), "", sources[now], "torch")
    assert bool(kept(tmp_path, problem=replace(PROBLEM, baseline=baseline))) is is_kept


def test_a_row_that_was_to_be_over_a_baseline_that_was_not_ok_is_tried_again(tmp_path, earlier):
    earlier(time_us=1.0, eager_speedup=2.0, baseline="expert", baseline_hash="e" * 16)
    baseline = OwnBaseline("expert", Path("expert.py"), "", "e" * 16, "torch")
    assert kept(tmp_path, problem=replace(PROBLEM, baseline=baseline)) == {}
