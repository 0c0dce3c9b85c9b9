"""The corpus through the pipeline of a normal run, and each of its cases past the naive judge.

A case is judged as any candidate is: nothing in the harness knows that it comes from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.build.cache import Cache
from harness.build.environment import arch_of, cuda_home, find_toolchain
from harness.candidate import read_candidate
from harness.device.choose import device_lock
from harness.errors import NothingToRun
from harness.pipeline import RunRequest
from harness.pipeline import run as judge_all
from harness.problem import REPOSITORY, Problem, load_problem
from harness.records.schema import Record
from harness.report.progress import Progress
from harness.selftest.asking import NaiveJudge
from harness.selftest.control import new_folder
from harness.selftest.corpus import CORPUS, PROBLEMS, Case, cases_for
from harness.selftest.matrix import NaiveResult, Row, all_as_expected, in_order, row_of, totals
from harness.settings import load_settings
from harness.verdict import Status

SETTINGS = REPOSITORY / "configs" / "selftest.yaml"
# Truths in float64 take a CPU seconds at the larger check sizes, for each case anew.
_LARGEST_CPU_CHECK = 512
# Faults of the machine have nothing to fool the naive judge with, and many only end it or make it wait.
_NOT_SHOWN = "machine"


@dataclass(frozen=True)
class Findings:
    """The rows of one run over the corpus, where its records are, and the control's record for each problem."""

    rows: list[Row]
    folder: Path
    csv_paths: list[Path]
    controls: list[Record]

    @property
    def as_expected(self) -> bool:
        """Whether every case came out as its header says, in runs whose own control (eager) passed."""
        return all_as_expected(self.rows) and all(record.status is Status.OK for record in self.controls)

    @property
    def sentences(self) -> list[str]:
        """The totals, and a word on each control without which the clocks of its run were held against nothing."""
        failed = [
            f"{record.problem}: eager itself came out as {record.status.value} ({record.reason}), so the clocks of "
            "this run were held against nothing; run it again"
            for record in self.controls if record.status is not Status.OK
        ]
        return totals(self.rows) + failed


@dataclass(frozen=True)
class _Round:
    """The cases of one problem, their records by name, and the record of its control."""

    problem: Problem
    cases: list[Case]
    records: dict[str, Record]
    control: Record


def run_corpus(cases: Sequence[Case], device: str, out_dir: Path | None, progress: Progress) -> Findings:
    """Judge those of `cases` that `device` (auto, cpu or cuda:N) can run, here and naively.

    Without `out_dir` records go to a new temporary folder. Raises HarnessError for what is the user's or the machine's
    fault, never for what a case does.
    """
    device_kind, settings = _kind_of(device), load_settings(str(SETTINGS))
    wanted = {name: mine for name in PROBLEMS if (mine := cases_for(cases, device_kind, name))}
    if not wanted:
        raise NothingToRun(f"none of the chosen cases runs on a {device_kind} device. Name another --device")
    folder = out_dir or new_folder()
    rounds: list[_Round] = []
    csv_paths: list[Path] = []
    for name, mine in wanted.items():
        problem = _at_home(load_problem(CORPUS / PROBLEMS[name], CORPUS), device_kind)
        progress.note(f"{problem.name}: {len(mine)} cases through a run like any other")
        candidates = [read_candidate(case.path) for case in mine]
        result = judge_all(RunRequest(problem, candidates, device, settings, folder), progress)
        records = {record.candidate: record for record in result.records if record.role == "candidate"}
        control = next(record for record in result.records if record.role == "baseline")
        rounds.append(_Round(problem, mine, records, control))
        csv_paths.append(result.csv_path)
    naive = _ask_naive_judge(rounds, device_kind, progress)
    rows = [row_of(case, each.records.get(case.name), naive.get(case.name)) for each in rounds for case in each.cases]
    return Findings(in_order(rows), folder, csv_paths, [each.control for each in rounds])


def _kind_of(device: str) -> str:
    from harness.device.cuda import cuda_is_there

    return "cpu" if device == "cpu" or (device == "auto" and not cuda_is_there()) else "cuda"


def _at_home(problem: Problem, device_kind: str) -> Problem:
    """The problem with the check sizes that this kind of device has the time for."""
    if device_kind != "cpu":
        return problem
    small = tuple(sizes for sizes in problem.check_sizes if max(sizes.values()) <= _LARGEST_CPU_CHECK)
    return replace(problem, check_sizes=small)


def _ask_naive_judge(rounds: Sequence[_Round], device_kind: str, progress: Progress) -> dict[str, NaiveResult]:
    """Every case but the machine's faults past the naive judge, one after the other, with the device to itself."""
    control = rounds[0].control
    digits = (control.sm or "").removeprefix("sm_")
    arch = arch_of((int(digits[:-1]), int(digits[-1]))) if digits else None
    toolchain, cache = find_toolchain(arch), Cache()
    toolkit = cuda_home(toolchain.nvcc_path) if toolchain.nvcc_path and device_kind == "cuda" else None
    uuid = control.uuid if device_kind == "cuda" else None
    total = sum(case.group != _NOT_SHOWN for each in rounds for case in each.cases)
    said: dict[str, NaiveResult] = {}
    with device_lock(control.uuid), NaiveJudge(device_kind, uuid, toolkit) as judge:
        for each in rounds:
            for case in each.cases:
                if case.group == _NOT_SHOWN:
                    continue
                build = cache.lookup(cache.key(read_candidate(case.path), toolchain))
                said[case.name] = judge.judge(case, each.problem, build.manifest if build else {})
                progress.note(f"naive judge [{len(said)}/{total}] {case.name}: {said[case.name].text}")
    return said
