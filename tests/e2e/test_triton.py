"""Triton candidates where there is no GPU, through the real command line: Triton's interpreter checks them on the CPU.

All shipped ones are held here, at their problems' own small sizes, wherever the suite runs.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.candidate import find_candidates

REPOSITORY = Path(__file__).resolve().parents[2]
PROBLEMS = ("tril_matmul", "matmul_transposed_a")
SHIPPED = {
    problem: [each.name for each in find_candidates(REPOSITORY / "candidates" / problem) if each.language == "triton"]
    for problem in PROBLEMS
}
SOURCE = (REPOSITORY / "candidates" / "tril_matmul" / "triton_ieee.py").read_text(encoding="utf-8")
STORE = "mask=(rows < M)[:, None] & (columns < M)[None, :])\n\n\ndef require"
EMPTY, LOWER = "        C = torch.empty_like(A)\n", "    lower = tl.where"
KERNEL, LAUNCH = "@triton.jit\n", "M, BLOCK_M, BLOCK_N, BLOCK_K, num_warps=8, num_stages=2)"
CONFIGS = "[triton.Config({'BLOCK_K': 32}), triton.Config({'BLOCK_K': 64}, num_warps=4)]"
# What is changed in a shipped candidate, and what becomes of it.
CHANGED = {
    "right": ((), "checked/interpreted"),
    "autotuned": (
        ((KERNEL, f"@triton.autotune({CONFIGS}, key=['M'])\n{KERNEL}"), (LAUNCH, "M, BLOCK_M, BLOCK_N)")),
        "checked/interpreted",
    ),
    "large_sizes_only": (
        ((EMPTY, f"        require(M > 100, 'M must be above 100')\n{EMPTY}"),), "checked/interpreted",
    ),
    "leaves_out_the_last_column": (  # zeros, since what nobody wrote may be NaN
        ((STORE, STORE.replace("columns < M", "columns < M - 1", 1)), (EMPTY, EMPTY.replace("empty", "zeros"))),
        "incorrect/wrong_values",
    ),
    "skips_the_last_k": ((("last_k = tl.minimum(first_row + BLOCK_M, M)", "last_k = tl.minimum(first_row, M)"),),
                         "incorrect/wrong_values"),
    "in_tf32": ((('accumulator, input_precision="ieee"', 'accumulator, input_precision="tf32"'),), "imprecise/reduced_precision"),
    "undefined_name": (((LOWER, f"    accumulator += offset\n{LOWER}"),), "incorrect/raised"),
    "writes_its_input": (((EMPTY, f"        A.add_(1.0)\n{EMPTY}"),), "rejected/inputs_written"),
    "inline_assembly": (
        ((LOWER, '    accumulator = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [accumulator], '
                 f"dtype=tl.float32, is_pure=True, pack=1)\n{LOWER}"),),
        "skipped/no_gpu",
    ),
    "cuda_graph": (((EMPTY, f"        torch.cuda.CUDAGraph()\n{EMPTY}"),), "skipped/no_gpu"),
    "on_the_device": (((EMPTY, "        C = torch.empty(A.shape, device='cuda')\n"),), "skipped/no_gpu"),
}

pytestmark = [
    pytest.mark.timeout(900), pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="there is no Triton: pip install triton"),
]


@pytest.fixture(scope="module")
def bench(new_bench):
    return new_bench("triton")


@pytest.fixture(scope="module")
def shipped(bench):
    """The rows of all shipped Triton candidates, by problem and name."""
    rows = {}
    for problem in PROBLEMS:
        results = bench.folder / f"results-{problem}"
        ended = replace(bench.end(bench.judge(
            f"problems/{problem}.yaml", REPOSITORY / "candidates" / problem, "cpu", "--only", "triton*", "--baselines", "eager",
            "--out", results,
        )), results=results)
        assert ended.code == 0, ended.err
        rows |= {(problem, name): row for name, row in ended.rows.items()}
    return rows


@pytest.mark.parametrize(("problem", "name"), [(problem, name) for problem, names in SHIPPED.items() for name in names])
def test_every_shipped_triton_candidate_is_right_at_sizes_of_one_tile_and_of_several(shipped, problem, name):
    row = shipped[problem, name]
    assert (row["status"], row["reason_code"]) == ("checked", "interpreted"), row["reason"]
    for sizes in {"tril_matmul": ("M=31", "M=257"), "matmul_transposed_a": ("M=31 K=33 N=29", "M=130 K=1001 N=257")}[problem]:
        assert sizes in row["reason"]
    assert float(row["err_max_u"]) < 20 and row["families"].startswith("as given, signs, spread")


def test_there_are_shipped_triton_candidates_of_both_problems():
    assert all(SHIPPED.values())


@pytest.fixture(scope="module")
def ended(bench):
    """One run of all changed ones."""
    sources = bench.folder / "changed"
    sources.mkdir()
    for name, (changes, _) in CHANGED.items():
        text = SOURCE
        for old, new in changes:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        (sources / f"{name}.py").write_text(text, encoding="utf-8")
    return bench.end(bench.judge(bench.folder / "tril_small.yaml", sources, "cpu"))


@pytest.mark.parametrize("name", CHANGED)
def test_a_mistake_is_its_own_and_what_takes_a_gpu_is_nobodys(ended, name):
    row = ended.rows[name]
    assert f"{row['status']}/{row['reason_code']}" == CHANGED[name][1], row["reason"]


def test_none_of_them_has_a_time_a_speedup_or_a_rank(ended):
    assert ended.code == 0, ended.err
    for name in CHANGED:
        assert {ended.rows[name][column] for column in ("time_us", "speedup", "rank", "call", "percent_of_sol")} == {""}, name
    assert "Traceback" not in ended.err


def test_the_sizes_and_what_was_refused_are_in_the_table(ended):
    assert "right: checked: right at M=1, M=31, M=100, M=128" in ended.out
    assert "large_sizes_only: note: it refuses sizes that the problem names: M=1 (raised ValueError" in ended.out
    assert ended.out.count("  checked ") == 3


def test_a_launch_that_was_wrong_is_made_again_in_the_interpreter(bench, ended, tmp_path):
    kept = tmp_path / "launch.pt"
    again = bench.run("reproduce", ended.csv_path, "skips_the_last_k", "--device", "cpu", "--out", kept, "--json")
    assert again.code == 0, again.err
    found = json.loads(again.out)
    assert (found["failed_again"], found["reason_code"], kept.is_file()) == (True, "wrong_values", True)


def test_of_one_that_is_right_there_is_no_launch_to_make_again(bench, ended):
    again = bench.run("reproduce", ended.csv_path, "right")
    assert again.code == 2 and "right is checked in" in again.err and "no launch of it failed" in again.err


def test_show_has_the_sizes_and_scores_count_only_what_has_a_whole_verdict(bench, ended):
    shown = bench.run("show", ended.csv_path, "right")
    assert "checked" in shown.out and "Triton's interpreter" in shown.out
    (found,) = json.loads(bench.run("scores", ended.csv_path, "--json").out)["scores"]
    whole = [verdict for _, verdict in CHANGED.values() if not verdict.startswith(("checked", "skipped"))]
    assert found["every_candidate"]["n"] == len(whole) and found["every_candidate"]["correct"] == 0
    assert found["candidates_left_out"] == len(CHANGED) - len(whole)


def test_the_answer_of_serve_has_it_as_neither_correct_nor_an_error(bench):
    job = {"problem": str(bench.folder / "tril_small.yaml"), "source": SOURCE, "name": "served"}
    done = subprocess.run(
        [sys.executable, "run.py", "serve", "--device", "cpu", "--config", str(bench.folder / "tiny.yaml")],
        input=json.dumps(job) + "\n", cwd=REPOSITORY, env=bench.environment, capture_output=True, text=True, timeout=600,
        check=False,
    )
    answer = json.loads(done.stdout)
    assert answer["record"]["status"] == "checked" and answer["record"]["time_us"] is None
    assert (answer["correctness"], answer["runtime"], answer["runtime_stats"]) == (False, -1.0, {})
    assert answer["metadata"]["checked"].startswith("right at M=1") and answer["errors"]


def test_the_report_has_it_without_a_time(bench, ended, tmp_path):
    page = tmp_path / "report.html"
    made = bench.run("report", ended.results, "--out", page)
    assert made.code == 0, made.err
    assert "in Triton&#39;s interpreter on the CPU" in page.read_text(encoding="utf-8")
