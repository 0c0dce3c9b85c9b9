"""Every case of the adversarial corpus through the real command line, each to the verdict and the kind that its header
expects, in runs that none of them may spoil for the others.

A device's cases are judged in lanes, each run when a test first asks for it. On a GPU every group is a lane, so that
`-k machine` costs the machine's cases only. On a CPU most cases are small and go in two halves side by side.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.build.cache import sha256_of
from harness.selftest.corpus import Case, cases_for, read_corpus

REPOSITORY = Path(__file__).resolve().parents[2]
CORPUS = REPOSITORY / "tests" / "adversarial"
CASES = read_corpus(CORPUS)
CHEATS = ("clock", "answer", "substance")
FULL_SIZE = ("clock", "substance")
GPU_MEMORY_BYTES = 64 << 20

pytestmark = pytest.mark.timeout(3600)


def lane_of(case: Case, device: str) -> str:
    """Which run a case belongs to: those that hang have limits of their own, and clocks and shares need longer work."""
    if case.problem != "tril_matmul":
        return "transposed"
    if any(pair.startswith("timed_out/") for pair in case.expected):
        return "hanging"
    if device != "cpu" or case.group in FULL_SIZE:
        return case.group
    return "small"


def cases_on(device: str) -> list[Case]:
    kind = device.partition(":")[0]
    return [case for problem in ("tril_matmul", "matmul_transposed_a") for case in cases_for(CASES, kind, problem)]


def _marked(device: str, name: str, *values: object):
    return pytest.param(device, *values, id=f"{device}-{name}", marks=[pytest.mark.gpu] if device != "cpu" else [])


DEVICES = ("cpu", "cuda:0")
EVERY_CASE = [
    _marked(device, f"{lane_of(case, device)}-{case.name}", case) for device in DEVICES for case in cases_on(device)
]
EVERY_LANE = [
    _marked(device, lane, lane)
    for device in DEVICES for lane in dict.fromkeys(lane_of(case, device) for case in cases_on(device))
]
on_every_lane = pytest.mark.parametrize(("device", "lane"), EVERY_LANE)


@dataclass
class Judged:
    """What became of the cases of one lane: rows by candidate, the commands' ends, and what lay there before."""

    cases: list[Case]
    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    ends: list = field(default_factory=list)
    benches: list = field(default_factory=list)
    before: dict[Path, str] = field(default_factory=dict)
    gpu_bytes: tuple[int, int] = (0, 0)

    def named(self, *groups: str) -> list[Case]:
        return [case for case in self.cases if case.group in groups]


def protected_files(benches: Iterable) -> dict[Path, str]:
    """The hash of every file that no candidate may change: of the repository, and of each bench but its results."""
    folders = [REPOSITORY / name for name in ("harness", "problems", "candidates", "configs", "results")]
    files = [REPOSITORY / "run.py", *(path for folder in folders for path in folder.rglob("*"))]
    for bench in benches:
        files += [*bench.folder.glob("*.yaml"), *bench.folder.glob("*.py"), *(bench.folder / "candidates").glob("*")]
    kept = (".py", ".yaml", ".csv", ".jsonl")
    return {path: sha256_of(path) for path in files if path.suffix in kept and path.is_file()}


@pytest.fixture(scope="session")
def judged(new_bench, gpu_bytes_in_use) -> Callable[[str, str], Judged]:
    """`judged(device, lane)`: the lane's cases, judged once.

    The small cases of a CPU go in two halves, which share the work of two cores, and beside them those that hang,
    which mostly wait. Everything else has the machine to itself.
    """
    made: dict[tuple[str, str], Judged] = {}

    def start(device: str, lane: str, share: list[Case], name: str):
        bench = new_bench(name)
        if lane == "hanging":
            bench.settings(load_timeout_s=12, build_timeout_s=25)
        problem = "transposed_small" if lane == "transposed" else "tril_full" if lane in FULL_SIZE else "tril_small"
        extra = []
        if lane == "transposed" and device != "cpu":
            extra = [REPOSITORY / "candidates" / "matmul_transposed_a" / "tiled_shared.py"]
        bench.candidates([*(case.path for case in share), *extra])
        return bench, lambda: bench.judge(bench.folder / f"{problem}.yaml", bench.folder / "candidates", device)

    def run(device: str, lanes: list[str]) -> None:
        shares: list[tuple[str, list[Case]]] = []
        for lane in lanes:
            cases = [case for case in cases_on(device) if lane_of(case, device) == lane]
            made[device, lane] = Judged(cases)
            shares += [(lane, part) for part in ((cases[::2], cases[1::2]) if lane == "small" else (cases,)) if part]
        started = [
            start(device, lane, share, f"{device[:4]}-{lane}-{number}") for number, (lane, share) in enumerate(shares)
        ]
        before = protected_files(bench for bench, _ in started)
        in_use = gpu_bytes_in_use() if device != "cpu" else 0
        processes = [go() for _, go in started]
        for (lane, _), (bench, _), process in zip(shares, started, processes):
            found = made[device, lane]
            end = bench.end(process, timeout_s=3000)
            found.rows.update(end.rows)
            found.ends.append(end)
            found.benches.append(bench)
        for lane in lanes:
            made[device, lane].before = before
        if device != "cpu":
            made[device, lanes[0]].gpu_bytes = (in_use, gpu_bytes_in_use(at_most=in_use + GPU_MEMORY_BYTES))

    def lane_judged(device: str, lane: str) -> Judged:
        if (device, lane) not in made:
            together = ["small", "hanging"]
            run(device, together if device == "cpu" and lane in together else [lane])
        return made[device, lane]

    return lane_judged


def verdict(row: dict[str, str]) -> str:
    return f"{row['status']}/{row['reason_code']}"


@pytest.mark.parametrize(("device", "case"), EVERY_CASE)
def test_a_case_gets_the_verdict_and_the_kind_that_its_header_expects(judged, device, case):
    row = judged(device, lane_of(case, device)).rows[case.name]
    assert verdict(row) in case.expected, row["reason"]
    if case.kinds and row["status"] == "ok":
        assert row["kind"] in case.kinds


@on_every_lane
def test_no_cheat_is_ok_as_a_custom_kernel_and_every_honest_control_is_ok(judged, device, lane):
    found = judged(device, lane)
    passed = {name for name, row in found.rows.items() if row["status"] == "ok"}
    assert not [case.name for case in found.named("answer") if case.name in passed]
    assert not [
        case.name for case in found.named(*CHEATS)
        if case.name in passed and (found.rows[case.name]["kind"] == "custom" or found.rows[case.name]["rank"])
    ]
    assert not [case.name for case in found.named("honest") if case.name not in passed]


@on_every_lane
def test_every_candidate_has_its_row_and_every_row_its_reason(judged, device, lane):
    found = judged(device, lane)
    assert set(found.rows) - {"eager", "tiled_shared"} == {case.name for case in found.cases}
    for name, row in found.rows.items():
        assert (row["status"] == "ok") == (row["reason_code"] == ""), name
        assert row["status"] == "ok" or 10 <= len(row["reason"]) < 1000, name
        assert "Traceback" not in row["reason"], name
        assert "\n" not in row["reason"] or row["status"] == "build_failed", name


@on_every_lane
def test_only_what_was_checked_and_right_has_a_time(judged, device, lane):
    for name, row in judged(device, lane).rows.items():
        assert (row["time_us"] != "") == (row["status"] == "ok"), name
        if row["status"] == "ok":
            assert float(row["time_us"]) > 0
            assert float(row["speedup_lo"]) <= float(row["speedup"]) <= float(row["speedup_hi"])


@on_every_lane
def test_every_run_ends_with_a_leaderboard_and_without_a_traceback(judged, device, lane):
    for end in judged(device, lane).ends:
        assert end.code == 0, end.err[-2000:]
        assert "Traceback" not in end.err + end.out
        for name in end.rows:
            assert name in end.out
        assert end.rows["eager"]["role"] == "baseline"
        assert end.rows["eager"]["status"] == "ok", end.rows["eager"]["reason"]


@on_every_lane
def test_nothing_is_left_of_any_candidate(judged, device, lane):
    benches = judged(device, lane).benches
    deadline = time.monotonic() + 5
    while any(bench.left_behind() for bench in benches) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [left for bench in benches for left in bench.left_behind()] == []


@on_every_lane
def test_what_candidates_print_or_pickle_reaches_nobody(judged, device, lane):
    for end in judged(device, lane).ends:
        said = end.out + end.err
        assert len(said) < 200_000
        assert "xxxxxxxx" not in said
        assert "the code of a pickle has run" not in said


@on_every_lane
def test_no_file_of_the_repository_or_of_another_candidate_has_changed(judged, device, lane):
    found = judged(device, lane)
    after = protected_files(found.benches)
    changed = [path for path, digest in found.before.items() if path in after and after[path] != digest]
    assert changed == []
    assert set(after) <= set(found.before)


@on_every_lane
def test_only_the_referee_writes_results(judged, device, lane):
    found = judged(device, lane)
    for bench, end in zip(found.benches, found.ends):
        assert {path.with_suffix("") for path in end.results.rglob("*") if path.is_file()} == {
            end.csv_path.with_suffix("")
        }, bench.folder


@on_every_lane
def test_every_kept_build_is_what_it_was_when_it_was_built(judged, device, lane):
    for bench in judged(device, lane).benches:
        for manifest in bench.cache.glob("entries/*/manifest.json"):
            body = json.loads(manifest.read_text(encoding="utf-8"))
            kept = {each["path"]: each["sha256"] for each in body["build"]["extensions"] if each["sha256"]}
            there = {path.name: sha256_of(path) for path in manifest.parent.iterdir() if path != manifest}
            assert there == kept


@pytest.mark.parametrize(("device", "lane"), [each for each in EVERY_LANE if each.values[0] != "cpu"])
def test_the_gpu_has_its_memory_back(judged, device, lane):
    before, after = judged(device, lane).gpu_bytes
    assert after - before <= GPU_MEMORY_BYTES


def test_a_right_result_of_pytorchs_own_kernels_stands_without_a_rank(judged):
    row = judged("cpu", "small").rows["torch_masked"]
    assert row["kind"] == "library"
    assert row["rank"] == ""


def test_lost_precision_is_named_by_its_class(judged):
    rows = judged("cpu", "small").rows
    assert "bf16-class" in rows["bf16"]["reason"]
    assert "tf32-class" in rows["tf32_rounded_cpu"]["reason"]


@pytest.mark.gpu
def test_tf32_and_bf16_are_imprecise_on_a_gpu_and_say_so(judged):
    answer, transposed = judged("cuda:0", "answer").rows, judged("cuda:0", "transposed").rows
    assert "tf32-class" in answer["tf32_cuda"]["reason"]
    assert "bf16-class" in answer["bf16"]["reason"]
    assert "tf32-class" in transposed["transposed_tf32_cuda"]["reason"]
    assert "bf16-class" in transposed["transposed_bf16"]["reason"]


def test_the_place_of_a_mistake_is_the_candidates_own_line(judged):
    rows = judged("cpu", "small").rows
    assert "raises_in_forward.py:15" in rows["raises_in_forward"]["reason"]
    assert "raises_in_init.py:16" in rows["raises_in_init"]["reason"]
    assert "syntax_error.py:14" in rows["syntax_error"]["reason"]
    assert "cpp_syntax_error_cpu.py:19" in rows["cpp_syntax_error_cpu"]["reason"]
    assert "ModelNeww" in rows["no_model_new"]["reason"]


@pytest.mark.gpu
def test_an_honest_sequential_sum_over_8192_passes_where_eager_splits_it(judged):
    row = judged("cuda:0", "transposed").rows["tiled_shared"]
    assert verdict(row) == "ok/", row["reason"]
    assert row["kind"] == "custom"
    assert row["rank"] == "1"
