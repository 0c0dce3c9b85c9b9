"""The adversarial corpus through the real command line, in lanes: the cases of a lane are judged in one run.

A lane is judged when a test first asks for it, so that `-k answer` costs those cases only. A group of cases is a
lane, or two where that is long for one process of the suite. What breaks at once, what hangs, and what is never built
are lanes of their own: their times are of no interest, and they go side by side, at work while others mostly wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.build.cache import sha256_of
from harness.selftest.corpus import Case, cases_for, read_corpus
from harness.results.ranking import vouched_speedup
from harness.selftest.matrix import GAINED

REPOSITORY = Path(__file__).resolve().parents[3]
CASES = read_corpus(REPOSITORY / "tests" / "adversarial")
DEVICES = ("cpu", "cuda:0")
# How many lanes a group is shared out to.
SHARES = {"clock": 2, "hanging": 2}
UNTIMED = ("unbuilt", "hanging-1", "hanging-2", "breaking")
# At small sizes a process breaks as well as at large ones; for a clock to be fooled there must be work to hide, and for
# some answers sums of more than 512 terms.
SMALL = (*UNTIMED, "machine")
MIDDLE = ("substance", "honest")
# A clock that is only doubted gives no rank either, and on a shared CPU the doubt may be all there is.
MAY_BE_DOUBTED = ("clock", "substance")
# What the harness is known to miss, with the device where it does; docs/design/adversarial.md says why. A case that is caught
# after all passes; take it off the list then.
KNOWN_MISSES: dict[str, tuple[str, ...]] = {}
GPU_MEMORY_BYTES = 64 << 20


def group_of(case: Case) -> str:
    if case.problem != "tril_matmul":
        return "transposed"
    if "timed_out/build_timeout" in case.expected:
        return "unbuilt"
    if any(pair.startswith("timed_out/") for pair in case.expected):
        return "hanging"
    return "breaking" if case.group in ("machine", "form") and "ok/" not in case.expected else case.group


def shows_nothing(case: Case, row: dict[str, str]) -> bool:
    """Whether another load left its row without what the case is about: a clock is only doubted, a kind unknown."""
    doubted = row["reason_code"] == "noisy" and case.group not in MAY_BE_DOUBTED and "unsure/noisy" not in case.expected
    unknown = row["status"] == "ok" and row["kind"] == "unknown" and case.kinds and "unknown" not in case.kinds
    return bool(doubted or unknown or (case.fools == "clock" and is_faster_by_chance(row)))


def is_faster_by_chance(row: dict[str, str]) -> bool:
    """Whether it seems to have gained on eager as its rank counts it, but by an interval so wide that it may have lost."""
    if row["status"] != "ok":
        return False
    time_us, unvouched_us = float(row["time_us"]), float(row["unvouched_us"] or 0)
    gained, least = (vouched_speedup(float(row[name]), time_us, unvouched_us) for name in ("speedup", "speedup_lo"))
    return gained >= GAINED and least < 1


def lanes_on(device: str) -> dict[str, list[Case]]:
    """The cases of each lane, the longest lanes first."""
    kind, groups = device.partition(":")[0], {}
    for problem in ("tril_matmul", "matmul_transposed_a"):
        for case in cases_for(CASES, kind, problem):
            groups.setdefault(group_of(case), []).append(case)
    lanes = {}
    for group, cases in groups.items():
        shares = SHARES.get(group, 1)
        for share in range(shares):
            lanes[f"{group}-{share + 1}" if shares > 1 else group] = cases[share::shares]
    order = ["clock-1", "clock-2", "substance", "honest", *lanes]
    return dict(sorted(lanes.items(), key=lambda item: order.index(item[0])))


LANES = {device: lanes_on(device) for device in DEVICES}


def _named(device: str, lane: str, *, values: tuple, case: str = ""):
    """A parameter whose first word, to the device, is what one process of the suite keeps together."""
    together = f"untimed@{device}-{lane}" if lane in UNTIMED else f"{lane}@{device}"
    marks = [pytest.mark.timeout(3600), pytest.mark.processes]
    marks += [pytest.mark.gpu] if device != "cpu" else []
    marks += [pytest.mark.alone] if lane not in UNTIMED else []
    return pytest.param(device, lane, *values, id=f"{together}-{case}" if case else together, marks=marks)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """For a test of `device` and `lane` every lane on every device, or what its mark names; every case besides."""
    if "lane" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker("lanes")
    wanted = [
        (device, lane) for device, lanes in LANES.items() for lane in lanes
        if mark is None or (lane in (mark.args or lanes) and device in mark.kwargs.get("devices", DEVICES))
    ]
    if "case" in metafunc.fixturenames:
        values = [
            _named(device, lane, values=(case,), case=case.name)
            for device, lane in wanted for case in LANES[device][lane]
        ]
        metafunc.parametrize(("device", "lane", "case"), values)
    else:
        metafunc.parametrize(("device", "lane"), [_named(device, lane, values=()) for device, lane in wanted])


@dataclass
class Judged:
    """What became of the cases of one lane: the command's end with its rows, and what lay in protected places before.

    Rows that show nothing since a shared CPU disturbed them are from a further run. `gpu_bytes` is the GPU's memory in
    use before and after, zero on a CPU.
    """

    cases: list[Case]
    bench: Any
    end: Any = None
    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    before: dict[Path, str] = field(default_factory=dict)
    gpu_bytes: tuple[int, int] = (0, 0)

    def named(self, *groups: str) -> list[Case]:
        return [case for case in self.cases if case.group in groups]

    def changed_files(self) -> list[Path]:
        """The protected files that are there now and are not what they were."""
        after = _protected_files([self.bench])
        return [path for path in after if after[path] != self.before.get(path)]


def _protected_files(benches: Iterable) -> dict[Path, str]:
    """The hash of every file that no candidate may change: of the repository, and of each bench but its results."""
    folders = [REPOSITORY / name for name in ("harness", "problems", "candidates", "configs", "results")]
    files = [REPOSITORY / "run.py", *(path for folder in folders for path in folder.rglob("*"))]
    for bench in benches:
        files += [*bench.folder.glob("*.yaml"), *bench.folder.glob("*.py"), *(bench.folder / "candidates").glob("*")]
    kept = (".py", ".yaml", ".csv", ".jsonl")
    return {path: sha256_of(path) for path in files if path.suffix in kept and path.is_file()}


@pytest.fixture(scope="session")
def lane_judged(new_bench, gpu_bytes_in_use) -> Callable[[str, str], Judged]:
    """`lane_judged(device, lane)`: the lane's cases, judged once.

    On a CPU the untimed lanes go side by side. Every other lane has its cores to itself, for what its clocks are to
    show is another's load as well.
    """
    made: dict[tuple[str, str], Judged] = {}

    def prepared(device: str, lane: str) -> Judged:
        found = Judged(LANES[device][lane], new_bench(f"{device[:4]}-{lane}"))
        if lane == "unbuilt":
            found.bench.settings(build_timeout_s=8)
        elif lane.startswith("hanging"):
            found.bench.settings(load_timeout_s=8)
        elif lane == "substance":
            # torch.compile inside a candidate calls the C++ compiler, for longest on one core of a busy machine.
            found.bench.settings(load_timeout_s=90)
        paths = [case.path for case in found.cases]
        if lane == "transposed" and device != "cpu":
            paths.append(REPOSITORY / "candidates" / "matmul_transposed_a" / "tiled_shared.py")
        found.bench.candidates(paths)
        return found

    def words_for(device: str, lane: str) -> tuple[object, ...]:
        bench = made[device, lane].bench
        size = "small" if lane in SMALL else "middle" if lane in MIDDLE else "full"
        problem = "transposed_small" if lane == "transposed" else f"tril_{size}"
        return bench.folder / f"{problem}.yaml", bench.folder / "candidates", device

    def judge(device: str, lane: str) -> Judged:
        if (device, lane) in made:
            return made[device, lane]
        lanes = UNTIMED if device == "cpu" and lane in UNTIMED else (lane,)
        made.update({(device, each): prepared(device, each) for each in lanes})
        before = _protected_files(made[device, each].bench for each in lanes)
        in_use = gpu_bytes_in_use() if device != "cpu" else 0
        processes = {each: made[device, each].bench.judge(*words_for(device, each)) for each in lanes}
        for each, process in processes.items():
            found = made[device, each]
            found.before, found.end = before, found.bench.end(process, timeout_s=3000)
        for each in lanes:
            found = made[device, each]
            cases, rows = {case.name: case for case in found.cases}, found.end.rows if device == "cpu" else {}
            disturbed = [
                name for name, row in rows.items()
                if name == "eager" or name in cases and shows_nothing(cases[name], row)
            ]
            found.rows = found.bench.judged_again(
                found.end, disturbed, *words_for(device, each), by_kind=True, also=is_faster_by_chance
            )
        if device != "cpu":
            made[device, lane].gpu_bytes = in_use, gpu_bytes_in_use(at_most=in_use + GPU_MEMORY_BYTES)
        return made[device, lane]

    return judge


@pytest.fixture
def judged(lane_judged, device: str, lane: str) -> Judged:
    """What became of the test's lane on its device."""
    return lane_judged(device, lane)


@pytest.fixture(scope="session")
def known_misses() -> dict[str, tuple[str, ...]]:
    """Cases that the harness is known to miss, with the devices where it does."""
    return KNOWN_MISSES


@pytest.fixture(scope="session")
def may_be_doubted() -> tuple[str, ...]:
    """Groups of cases whose clock may be only doubted on a CPU."""
    return MAY_BE_DOUBTED
