"""Every wrong, faulty and honest kernel of tests/fixtures through the real command line, each to the verdict that its
docstring expects, in a run that none of them may spoil for the others.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
FIXTURES = REPOSITORY / "tests" / "fixtures"

pytestmark = pytest.mark.timeout(1800)
GPU = pytest.param("cuda:0", marks=pytest.mark.gpu)

# g++ and nvcc take most of a minute each on two cores: test_building.py has one of each kind.
COMPILED_ON_CPU = ("cpp_syntax_error_cpu",)


def fixtures_for(device: str, problem: str) -> list[Path]:
    """The fixtures of a problem that `device` can run: those of the other device are named so."""
    other = "_cuda" if device == "cpu" else "_cpu"
    folders = [FIXTURES / "wrong" / problem, FIXTURES / "honest" / problem]
    if problem == "tril_matmul":
        folders.append(FIXTURES / "faults")
    return [path for folder in folders for path in sorted(folder.glob("*.py")) if not path.stem.endswith(other)]


def named(device: str, problem: str) -> list:
    marks = [pytest.mark.gpu] if device != "cpu" else []
    return [
        pytest.param(device, path, id=f"{device}-{path.stem}", marks=marks)
        for path in fixtures_for(device, problem) if path.stem not in COMPILED_ON_CPU
    ]


EVERY_TRIL = named("cpu", "tril_matmul") + named("cuda:0", "tril_matmul")
EVERY_TRANSPOSED = named("cpu", "matmul_transposed_a") + named("cuda:0", "matmul_transposed_a")
HONEST = {path.stem for path in (FIXTURES / "honest").rglob("*.py")}
WRONG = {path.stem for path in (FIXTURES / "wrong").rglob("*.py")}


@pytest.fixture(scope="session")
def tril_runs(new_bench):
    """`tril_runs(device)`: (rows, ends, benches) of the runs over all fixtures of tril_matmul on that device.

    On a CPU three runs go side by side: two share the work of two cores, one waits for those that hang. On a GPU
    they follow each other.
    """
    made = {}

    def run(device: str):
        if device not in made:
            paths = [path for path in fixtures_for(device, "tril_matmul") if path.stem not in COMPILED_ON_CPU]
            hanging = [path for path in paths if path.stem.startswith("hang_")]
            rest = [path for path in paths if path not in hanging]
            halves = [rest[::2], rest[1::2]] if device == "cpu" else [rest]
            benches = [new_bench(f"{device[:4]}-{number}") for number in range(len(halves) + 1)]
            benches[-1].settings(load_timeout_s=12, build_timeout_s=25)
            ends, started = [], []
            for bench, share in zip(benches, [*halves, hanging]):
                started.append(bench.judge(bench.folder / "tril_small.yaml", bench.candidates(share), device))
                if device != "cpu":
                    ends.append(bench.end(started[-1]))
            ends = ends or [bench.end(process) for bench, process in zip(benches, started)]
            made[device] = {name: row for end in ends for name, row in end.rows.items()}, ends, benches
        return made[device]

    return run


def verdict(row: dict[str, str]) -> str:
    return f"{row['status']}/{row['reason_code']}"


@pytest.mark.parametrize(("device", "path"), EVERY_TRIL)
def test_a_fixture_gets_the_verdict_that_its_docstring_expects(tril_runs, expected, device, path):
    row = tril_runs(device)[0][path.stem]
    assert verdict(row) in expected(path), row["reason"]


@pytest.mark.parametrize("device", ["cpu", GPU])
def test_no_wrong_kernel_is_ok_and_every_honest_one_is(tril_runs, device):
    rows = tril_runs(device)[0]
    assert not [name for name in WRONG & set(rows) if rows[name]["status"] == "ok"]
    assert not [name for name in HONEST & set(rows) if rows[name]["status"] != "ok"]


@pytest.mark.parametrize("device", ["cpu", GPU])
def test_every_candidate_has_its_row_and_every_row_its_reason(tril_runs, device):
    rows, _, _ = tril_runs(device)
    wanted = {path.stem for path in fixtures_for(device, "tril_matmul")} - set(COMPILED_ON_CPU)
    assert set(rows) - {"eager"} == wanted
    for name, row in rows.items():
        assert (row["status"] == "ok") == (row["reason_code"] == ""), name
        assert row["status"] == "ok" or 10 <= len(row["reason"]) < 1000, name
        assert "Traceback" not in row["reason"], name
        assert "\n" not in row["reason"] or row["status"] == "build_failed", name


@pytest.mark.parametrize("device", ["cpu", GPU])
def test_only_what_was_checked_and_right_has_a_time(tril_runs, device):
    for name, row in tril_runs(device)[0].items():
        assert (row["time_us"] != "") == (row["status"] == "ok"), name
        if row["status"] == "ok":
            assert float(row["time_us"]) > 0
            assert float(row["speedup_lo"]) <= float(row["speedup"]) <= float(row["speedup_hi"])


@pytest.mark.parametrize("device", ["cpu", GPU])
def test_every_run_ends_with_a_leaderboard_and_without_a_traceback(tril_runs, device):
    for end in tril_runs(device)[1]:
        assert end.code == 0, end.err[-2000:]
        assert "Traceback" not in end.err + end.out
        for name in end.rows:
            assert name in end.out
        assert end.rows["eager"]["role"] == "baseline"


@pytest.mark.parametrize("device", ["cpu", GPU])
def test_nothing_is_left_of_any_candidate(tril_runs, device):
    benches = tril_runs(device)[2]
    deadline = time.monotonic() + 5
    while any(bench.left_behind() for bench in benches) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [left for bench in benches for left in bench.left_behind()] == []


@pytest.mark.parametrize("device", ["cpu", GPU])
def test_printing_in_forward_reaches_nobody(tril_runs, device):
    for end in tril_runs(device)[1]:
        assert len(end.out) + len(end.err) < 200_000
        assert "xxxxxxxx" not in end.out + end.err


def test_a_right_result_of_pytorchs_own_kernels_stands_without_a_rank(tril_runs):
    rows = tril_runs("cpu")[0]
    assert rows["torch_masked"]["kind"] == "library"
    assert rows["torch_masked"]["rank"] == ""


def test_lost_precision_is_named_by_its_class(tril_runs):
    rows = tril_runs("cpu")[0]
    assert "bf16-class" in rows["bf16_cpu"]["reason"]
    assert "tf32-class" in rows["tf32_rounded_cpu"]["reason"]


def test_the_place_of_an_exception_is_the_candidates_own_line(tril_runs):
    rows = tril_runs("cpu")[0]
    assert "raises_in_forward.py:12" in rows["raises_in_forward"]["reason"]
    assert "raises_in_init.py:13" in rows["raises_in_init"]["reason"]
    assert "syntax_error.py:11" in rows["syntax_error"]["reason"]
    assert "ModelNeww" in rows["no_model_new"]["reason"]


@pytest.fixture(scope="session")
def transposed_runs(new_bench):
    """`transposed_runs(device)`: the fixtures of matmul_transposed_a, and on a GPU its own sequential-sum kernel."""
    made = {}

    def run(device: str):
        if device not in made:
            bench = new_bench(f"transposed-{device[:4]}")
            paths = fixtures_for(device, "matmul_transposed_a")
            if device != "cpu":
                paths = [*paths, REPOSITORY / "candidates" / "matmul_transposed_a" / "tiled_shared.py"]
            problem = bench.folder / "transposed_small.yaml"
            made[device] = bench.end(bench.judge(problem, bench.candidates(paths), device)).rows
        return made[device]

    return run


@pytest.mark.parametrize(("device", "path"), EVERY_TRANSPOSED)
def test_a_fixture_of_the_long_product_gets_the_verdict_that_its_docstring_expects(
    transposed_runs, expected, device, path
):
    row = transposed_runs(device)[path.stem]
    assert verdict(row) in expected(path), row["reason"]


@pytest.mark.gpu
def test_an_honest_sequential_sum_over_8192_passes_where_eager_splits_it(transposed_runs):
    row = transposed_runs("cuda:0")["tiled_shared"]
    assert verdict(row) == "ok/", row["reason"]
    assert row["kind"] == "custom"
    assert row["rank"] == "1"


@pytest.mark.gpu
def test_tf32_and_bf16_are_imprecise_on_a_gpu_and_say_so(tril_runs, transposed_runs):
    for rows in (tril_runs("cuda:0")[0], transposed_runs("cuda:0")):
        assert "tf32-class" in rows["tf32_cuda"]["reason"]
        assert "bf16-class" in rows["bf16_cuda"]["reason"]


def test_every_fixture_says_what_it_expects(expected):
    for path in FIXTURES.rglob("*.py"):
        assert expected(path), path
