"""What the adversarial corpus leaves of the run, the repository and the machine: all that was there, and no more."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from harness.build.cache import sha256_of

GPU_MEMORY_BYTES = 64 << 20


def test_every_run_ends_with_a_leaderboard_and_without_a_traceback(judged):
    end = judged.end
    assert end.code == 0, end.err[-2000:]
    assert "Traceback" not in end.err + end.out
    for name in end.rows:
        assert name in end.out
    eager = judged.rows["eager"]
    assert (eager["role"], eager["status"]) == ("baseline", "ok"), eager["reason"]


def test_nothing_is_left_of_any_candidate(judged):
    deadline = time.monotonic() + 5
    while judged.bench.left_behind() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert judged.bench.left_behind() == []


@pytest.mark.lanes("machine")
def test_nothing_stays_in_the_cache_or_in_shared_memory_but_what_was_built(judged):
    shared = Path("/dev/shm/left-by-a-candidate")  # as leaves_shared_memory calls it
    left = [str(path) for path in (*judged.bench.cache.rglob("filled-*"), shared) if path.exists()]
    shared.unlink(missing_ok=True)
    assert left == []


def test_what_candidates_print_or_pickle_reaches_nobody(judged):
    said = judged.end.out + judged.end.err
    assert len(said) < 200_000
    assert "xxxxxxxx" not in said
    assert "the code of a pickle has run" not in said


def test_no_file_of_the_repository_or_of_another_candidate_has_changed(judged):
    assert judged.changed_files() == []


def test_only_the_judge_writes_results(judged):
    written = {path.with_suffix("") for path in judged.end.results.rglob("*") if path.is_file()}
    assert written == {judged.end.csv_path.with_suffix("")}


def test_every_kept_build_is_what_it_was_when_it_was_built(judged):
    for manifest in judged.bench.cache.glob("entries/*/manifest.json"):
        body = json.loads(manifest.read_text(encoding="utf-8"))
        kept = {each["path"]: each["sha256"] for each in body["build"]["extensions"] if each["sha256"]}
        assert {path.name: sha256_of(path) for path in manifest.parent.iterdir() if path != manifest} == kept


@pytest.mark.lanes(devices=["cuda:0"])
@pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="other tests have memory of the GPU meanwhile")
def test_the_gpu_has_its_memory_back(judged):
    before, after = judged.gpu_bytes
    assert after - before <= GPU_MEMORY_BYTES
