"""Candidates that must be compiled, on a machine without a GPU: C++ is run, CUDA is compiled for what it would need."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.build.toolchain import find_toolchain

REPOSITORY = Path(__file__).resolve().parents[2]
FORM = REPOSITORY / "tests" / "adversarial" / "form"

pytestmark = [
    pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone,
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler"),
]
needs_nvcc = pytest.mark.skipif(find_toolchain(None).nvcc_path is None, reason="there is no nvcc")


@pytest.fixture(scope="module")
def bench(new_bench):
    bench = new_bench("building")
    candidates = REPOSITORY / "candidates" / "tril_matmul"
    bench.candidates(
        [candidates / "openmp_cpu.py", candidates / "naive_per_element.py", FORM / "cuda_syntax_error_cuda.py"]
    )
    return bench


@pytest.fixture(scope="module")
def words(bench):
    return bench.folder / "tril_small.yaml", bench.folder / "candidates", "cpu"


@pytest.fixture(scope="module")
def first(bench, words):
    return bench.end(bench.judge(*words))


def test_the_openmp_candidate_is_built_run_and_ranked(bench, words, first):
    assert first.code == 0, first.err[-2000:]
    row = bench.judged_again(first, ["openmp_cpu"], *words, by_kind=True)["openmp_cpu"]
    assert (row["status"], row["rank"], row["kind"]) == ("ok", "1", "custom"), row["reason"]
    assert float(first.rows["openmp_cpu"]["build_s"]) > 1
    assert row["language"] == "cpp"


@needs_nvcc
def test_a_cuda_candidate_is_compiled_and_its_registers_are_told_but_never_a_time(first):
    row = first.rows["naive_per_element"]
    assert (row["status"], row["reason_code"]) == ("compiled", "no_gpu")
    assert "registers" in row["reason"]
    assert int(row["registers"]) > 0
    assert row["arch"].startswith("sm_")
    assert row["time_us"] == row["rank"] == row["speedup"] == ""


@needs_nvcc
def test_a_mistake_in_cuda_is_shown_on_the_candidates_own_line_and_not_as_ninjas_sandbox(first):
    row = first.rows["cuda_syntax_error_cuda"]
    assert (row["status"], row["reason_code"]) == ("build_failed", "compile_error")
    assert "cuda_syntax_error_cuda.py:19" in row["reason"]
    assert "ninja" not in row["reason"]
    assert len(row["reason"].splitlines()) < 12


def test_a_second_run_builds_nothing(bench, first):
    second = bench.end(bench.judge(
        bench.folder / "tril_small.yaml", bench.folder / "candidates", "cpu", "--skip", "cuda_syntax_error_cuda"
    ))
    assert second.code == 0
    for name in ("openmp_cpu", "naive_per_element"):
        if first.rows[name]["status"] in ("ok", "compiled", "unsure"):
            assert second.rows[name]["cached"].lower() == "true", name
            # A shared CPU may have been disturbed in the one and not in the other.
            assert second.rows[name]["status"] in ("ok", "compiled", "unsure"), name
