"""The corpus through a normal run, in which nothing knows that a case comes from here, and past the naive judge."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from harness.build.cache import Cache
from harness.build.toolchain import arch_of, cuda_home, find_toolchain
from harness.device.choice import device_kind
from harness.device.lock import DeviceLock
from harness.judge.run import RunRequest
from harness.model.candidate import read_candidate
from harness.model.errors import InputError, NothingToRun
from harness.model.paths import CONFIGS_DIR
from harness.model.problem import Problem, load_problem
from harness.model.settings import load_settings
from harness.model.verdict import Status
from harness.report.progress import Progress
from harness.results.record import Record
from harness.runs.cluster.link import Link, check_one_model
from harness.runs.cluster.run import run as judge_on_cluster
from harness.runs.fleet.fleet import run as judge_all
from harness.selftest.control_row import new_folder
from harness.selftest.corpus import CORPUS, PROBLEMS, Case, cases_for
from harness.selftest.matrix import NaiveResult, Row, all_as_expected, in_order, row_of, totals
from harness.selftest.naive_client import NaiveJudge

SETTINGS = CONFIGS_DIR / "selftest.yaml"
_LARGEST_CPU_CHECK = 512  # truths in float64 take a CPU seconds at the larger check sizes, for each case anew
_NOT_SHOWN = "machine"  # its faults have nothing to fool the naive judge with, and many only end it or make it wait


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
        return totals(self.rows) + [
            f"{record.problem}: eager itself came out as {record.status.value} ({record.reason}), so the clocks of "
            "this run were held against nothing; run it again"
            for record in self.controls if record.status is not Status.OK
        ]


def run_corpus(
    cases: Sequence[Case], devices: Sequence[str], out_dir: Path | None, progress: Progress, link: Link | None = None,
    wait_s: float | None = None, *, with_naive: bool = True,
) -> Findings:
    """Judge those of `cases` that `devices` (auto, cpu or cuda:N) can run, here and `with_naive` also naively, each on
    one of them. A case that needs a package goes past the naive judge anyhow: it tells a package that is broken here.
    On the devices of a cluster instead where there is a `link` to one; the naive judge is asked on one machine alone.

    Without `out_dir` records go to a new temporary folder. Each device is waited for at most `wait_s`, as `device.lock`
    does. Raises HarnessError for what is the user's or the machine's fault, never for what a case does.
    """
    kind, settings = link.kind if link else device_kind(devices[0]), load_settings(str(SETTINGS))
    wanted = {name: mine for name in PROBLEMS if (mine := cases_for(cases, kind, name))}
    if not wanted:
        raise NothingToRun(f"none of the chosen cases runs on a {kind} device. Name another --device")
    if link:
        check_one_model(link.models)  # before hours of work, and once more below: one type may have several names
    folder = out_dir or new_folder()
    judged: list[tuple[Case, Problem]] = []
    records: dict[str, Record] = {}  # by the names of cases, of which none stands twice
    controls, csv_paths = [], []
    for name, mine in wanted.items():
        problem = load_problem(CORPUS / PROBLEMS[name], CORPUS)
        if kind == "cpu":
            small = tuple(sizes for sizes in problem.check_sizes if max(sizes.values()) <= _LARGEST_CPU_CHECK)
            problem = replace(problem, check_sizes=small)
        progress.note(f"{problem.name}: {len(mine)} cases through a run like any other")
        candidates = [read_candidate(case.path) for case in mine]
        asked = RunRequest(problem, candidates, kind if link else devices[0], settings, folder, wait_s=wait_s)
        results = judge_on_cluster(asked, link, progress) if link else judge_all(asked, devices, progress)
        if len(results) > 1:
            hint = "Choose one with --accelerator H100" if link else "Name those of one model with --devices cuda:0,cuda:2"
            raise InputError("these GPUs are of several models, and a matrix is of one", hint=hint)
        [result] = results
        judged += [(case, problem) for case in mine]
        records |= {record.candidate: record for record in result.records if record.role == "candidate"}
        controls += [record for record in result.records if record.role == "baseline"]
        csv_paths.append(result.csv_path)
    shown = [each for each in judged if each[0].needs or (with_naive and each[0].group != _NOT_SHOWN)]
    naive = {} if link or not shown else _ask_naive_judge(shown, controls, kind, progress, wait_s)
    rows = [row_of(case, records.get(case.name), naive.get(case.name)) for case, _ in judged]
    return Findings(in_order(rows), folder, csv_paths, controls)


def _ask_naive_judge(
    cases: Sequence[tuple[Case, Problem]], controls: list[Record], kind: str, progress: Progress, wait_s: float | None
) -> dict[str, NaiveResult]:
    """`cases` past the naive judge: one at a time on each device of the `controls`, with it to itself."""
    uuids = dict.fromkeys(control.uuid for control in controls)
    digits = (controls[0].sm or "").removeprefix("sm_")
    arch = arch_of((int(digits[:-1]), int(digits[-1]))) if digits else None
    toolchain, cache = find_toolchain(arch), Cache()
    toolkit = cuda_home(toolchain.nvcc_path) if toolchain.nvcc_path and kind == "cuda" else None
    waiting, results = deque(cases), {}

    def ask_on(uuid: str | None) -> None:
        judge = NaiveJudge(kind, uuid if kind == "cuda" else None, toolkit)
        with DeviceLock(uuid, uuid or "this CPU", progress, wait_s=wait_s).held():
            while waiting:
                try:
                    case, problem = waiting.popleft()
                except IndexError:
                    return  # another device's was quicker
                build = cache.lookup(cache.key(read_candidate(case.path), toolchain))
                result = results[case.name] = judge.judge(case, problem, build.manifest if build else {})
                progress.note(f"naive judge [{len(results)}/{len(cases)}] {case.name}: {result.text}")

    with ThreadPoolExecutor(len(uuids), thread_name_prefix="naive-judge") as asked:
        for each in [asked.submit(ask_on, uuid) for uuid in uuids]:
            each.result()
    return results
