"""Every case of the adversarial corpus through the real command line, each to the verdict and the kind that its header
expects, in runs that none of them may spoil for the others.

The cases of a group are a lane, judged in one run when a test first asks for it, so that `-k answer` costs those
cases only. What breaks at once, and what hangs, are lanes of their own, for their times are of no interest.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.build.cache import sha256_of
from harness.selftest.corpus import Case, cases_for, read_corpus
from harness.selftest.matrix import GAINED

REPOSITORY = Path(__file__).resolve().parents[2]
CORPUS = REPOSITORY / "tests" / "adversarial"
CASES = read_corpus(CORPUS)
CHEATS = ("clock", "answer", "substance")
# A clock that is only doubted gives no rank either, and on a shared CPU the doubt may be all there is.
DOUBTED = "unsure/noisy"
MAY_BE_DOUBTED = ("clock", "substance")
UNTIMED = ("breaking", "hanging")
# At small sizes a process breaks as well as at large ones; for a clock to be fooled there must be work to hide.
SMALL = (*UNTIMED, "machine")
GPU_MEMORY_BYTES = 64 << 20
# What the harness is known to miss, with the device where it does; docs/adversarial.md says why. A case that is caught
# after all passes; take it off the list then.
KNOWN_MISSES = {"small_lie": ("cpu",)}

pytestmark = pytest.mark.timeout(3600)


def lane_of(case: Case) -> str:
    if case.problem != "tril_matmul":
        return "transposed"
    if any(pair.startswith("timed_out/") for pair in case.expected):
        return "hanging"
    return "breaking" if case.group in ("machine", "form") and "ok/" not in case.expected else case.group


def cases_on(device: str) -> list[Case]:
    kind = device.partition(":")[0]
    return [case for problem in ("tril_matmul", "matmul_transposed_a") for case in cases_for(CASES, kind, problem)]


def _marked(device: str, lane: str, name: str, *values: object):
    marks = [pytest.mark.gpu] if device != "cpu" else []
    marks += [pytest.mark.alone] if lane not in UNTIMED else []
    return pytest.param(device, *values, id=f"{device}-{name}", marks=marks)


DEVICES = ("cpu", "cuda:0")
EVERY_CASE = [
    _marked(device, lane_of(case), f"{lane_of(case)}-{case.name}", case)
    for device in DEVICES for case in cases_on(device)
]
EVERY_LANE = [
    _marked(device, lane, lane, lane)
    for device in DEVICES for lane in dict.fromkeys(lane_of(case) for case in cases_on(device))
]
on_every_lane = pytest.mark.parametrize(("device", "lane"), EVERY_LANE)


@dataclass
class Judged:
    """What became of the cases of one lane: the command's end with its rows, and what lay in protected places before.

    Rows of honest ones that a shared CPU disturbed are from a second run. `gpu_bytes` is the GPU's memory in use before
    and after, zero on a CPU.
    """

    cases: list[Case]
    bench: Any
    end: Any = None
    rows: dict[str, dict[str, str]] = field(default_factory=dict)
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

    On a CPU the untimed lanes go side by side, one at work while the other mostly waits. Every other lane has the
    machine to itself, for what its clocks are to show is another's load as well.
    """
    made: dict[tuple[str, str], Judged] = {}

    def prepared(device: str, lane: str) -> Judged:
        found = Judged([case for case in cases_on(device) if lane_of(case) == lane], new_bench(f"{device[:4]}-{lane}"))
        if lane == "hanging":
            found.bench.settings(load_timeout_s=8, build_timeout_s=15)
        paths = [case.path for case in found.cases]
        if lane == "transposed" and device != "cpu":
            paths.append(REPOSITORY / "candidates" / "matmul_transposed_a" / "tiled_shared.py")
        found.bench.candidates(paths)
        return found

    def words_for(device: str, lane: str) -> tuple[object, ...]:
        bench = made[device, lane].bench
        problem = "transposed_small" if lane == "transposed" else "tril_small" if lane in SMALL else "tril_full"
        return bench.folder / f"{problem}.yaml", bench.folder / "candidates", device

    def lane_judged(device: str, lane: str) -> Judged:
        if (device, lane) in made:
            return made[device, lane]
        lanes = UNTIMED if device == "cpu" and lane in UNTIMED else (lane,)
        made.update({(device, each): prepared(device, each) for each in lanes})
        before = protected_files(made[device, each].bench for each in lanes)
        in_use = gpu_bytes_in_use() if device != "cpu" else 0
        processes = {each: made[device, each].bench.judge(*words_for(device, each)) for each in lanes}
        for each, process in processes.items():
            found = made[device, each]
            found.before, found.end = before, found.bench.end(process, timeout_s=3000)
        for each in lanes:
            found = made[device, each]
            honest = [case.name for case in found.named("honest")] if device == "cpu" else []
            found.rows = found.bench.judged_again(found.end, honest, *words_for(device, each))
        if device != "cpu":
            made[device, lane].gpu_bytes = in_use, gpu_bytes_in_use(at_most=in_use + GPU_MEMORY_BYTES)
        return made[device, lane]

    return lane_judged


def verdict(row: dict[str, str]) -> str:
    return f"{row['status']}/{row['reason_code']}"


def is_known_miss(device: str, case: Case) -> bool:
    return device in KNOWN_MISSES.get(case.name, ())


def test_every_known_miss_is_a_case_and_is_named_on_the_page():
    page = (REPOSITORY / "docs" / "adversarial.md").read_text(encoding="utf-8").partition("<!-- matrix")[0]
    assert set(KNOWN_MISSES) <= {case.name for case in CASES}
    assert [name for name in KNOWN_MISSES if f"`{name}`" not in page] == []


@pytest.mark.parametrize(("device", "case"), EVERY_CASE)
def test_a_case_gets_the_verdict_and_the_kind_that_its_header_expects(judged, device, case):
    row = judged(device, lane_of(case)).rows[case.name]
    if row["status"] == "ok" and is_known_miss(device, case):
        pytest.xfail(f"{case.name} is not caught on {device}: docs/adversarial.md says why")
    may_be_doubted = device == "cpu" and case.group in MAY_BE_DOUBTED
    assert verdict(row) in {*case.expected, *([DOUBTED] if may_be_doubted else [])}, row["reason"]
    if case.kinds and row["status"] == "ok":
        assert row["kind"] in case.kinds
    if case.fools == "clock" and row["status"] == "ok":  # what it tried may have come to nothing
        assert float(row["speedup"]) < GAINED


@on_every_lane
def test_no_cheat_is_ok_as_a_custom_kernel_and_every_honest_control_is_ok(judged, device, lane):
    found = judged(device, lane)
    known = {case.name for case in found.cases if is_known_miss(device, case)}
    passed = {name for name, row in found.rows.items() if row["status"] == "ok"} - known
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
    end = judged(device, lane).end
    assert end.code == 0, end.err[-2000:]
    assert "Traceback" not in end.err + end.out
    for name in end.rows:
        assert name in end.out
    assert end.rows["eager"]["role"] == "baseline"
    assert end.rows["eager"]["status"] == "ok", end.rows["eager"]["reason"]


@on_every_lane
def test_nothing_is_left_of_any_candidate(judged, device, lane):
    bench = judged(device, lane).bench
    deadline = time.monotonic() + 5
    while bench.left_behind() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert bench.left_behind() == []


@pytest.mark.alone
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def test_nothing_stays_in_the_cache_or_in_shared_memory_but_what_was_built(judged, device):
    bench = judged(device, "machine").bench
    shared = Path("/dev/shm/left-by-a-candidate")  # as leaves_shared_memory calls it
    left = [str(path) for path in (*bench.cache.rglob("filled-*"), shared) if path.exists()]
    shared.unlink(missing_ok=True)
    assert left == []


@on_every_lane
def test_what_candidates_print_or_pickle_reaches_nobody(judged, device, lane):
    said = judged(device, lane).end.out + judged(device, lane).end.err
    assert len(said) < 200_000
    assert "xxxxxxxx" not in said
    assert "the code of a pickle has run" not in said


@on_every_lane
def test_no_file_of_the_repository_or_of_another_candidate_has_changed(judged, device, lane):
    found = judged(device, lane)
    after = protected_files([found.bench])
    assert [path for path in after if after[path] != found.before.get(path)] == []


@on_every_lane
def test_only_the_referee_writes_results(judged, device, lane):
    end = judged(device, lane).end
    written = {path.with_suffix("") for path in end.results.rglob("*") if path.is_file()}
    assert written == {end.csv_path.with_suffix("")}


@on_every_lane
def test_every_kept_build_is_what_it_was_when_it_was_built(judged, device, lane):
    for manifest in judged(device, lane).bench.cache.glob("entries/*/manifest.json"):
        body = json.loads(manifest.read_text(encoding="utf-8"))
        kept = {each["path"]: each["sha256"] for each in body["build"]["extensions"] if each["sha256"]}
        assert {path.name: sha256_of(path) for path in manifest.parent.iterdir() if path != manifest} == kept


@pytest.mark.parametrize(("device", "lane"), [each for each in EVERY_LANE if each.values[0] != "cpu"])
def test_the_gpu_has_its_memory_back(judged, device, lane):
    before, after = judged(device, lane).gpu_bytes
    assert after - before <= GPU_MEMORY_BYTES


@pytest.mark.alone
def test_a_right_result_of_pytorchs_own_kernels_stands_without_a_rank(judged):
    row = judged("cpu", "honest").rows["torch_masked"]
    assert row["kind"] == "library"
    assert row["rank"] == ""


@pytest.mark.alone
def test_lost_precision_is_named_by_its_class(judged):
    rows = judged("cpu", "answer").rows
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
    rows = judged("cpu", "breaking").rows
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
