"""KernelBench's scores over a folder of problems: fast_p, geometric mean speedup, correctness rate.

Definitions: Ouyang et al., "KernelBench: Can LLMs Write Efficient GPU Kernels?" (arXiv 2502.10517), and
src/score.py of github.com/ScalingIntelligence/KernelBench: fast_p is the share of all N samples that are correct and
whose speedup over eager is greater than p; fast_0 is therefore the correctness rate. The geometric mean is over the
correct samples alone. What counts as correct is this harness's business, and stricter: status `ok`, or `unsure`, which
is right and could not be timed, so that it counts for fast_0 and for no other. A row that does not show its work
(`results.ranking`) is no sample. Runs over a baseline of the user's own have scores apart.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.model.verdict import WANT_ANOTHER_DEVICE, ReasonCode, Status
from harness.results.changes import speedup_interval
from harness.results.joined_runs import newest_rows
from harness.results.own_baseline import fault_of
from harness.results.ranking import shows_its_work, vouched_speedup
from harness.results.record import Record
from harness.results.result_files import ResultFile
from harness.timing.stats.difference import geometric_mean
from harness.timing.stats.trimmed_mean import Interval

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
_CORRECT = (Status.OK, Status.UNSURE)
_NOT_TRIED = {Status.HARNESS_ERROR, *WANT_ANOTHER_DEVICE}  # no verdict on the candidate
_FOR_RIGHT = 0.1  # of a reward, for outputs that are right; what is left goes to the time


def reward_of(record: Record) -> float | None:
    """Return a reward from 0 to 1 for a `record` that was ranked, or None where another try may say otherwise.

    0 where the candidate is to blame; 0.1 where its outputs are right, but it was not timed, or has no rank, as what
    only calls a library. Else 0.1 + 0.9·lo/(1 + lo), with the low end of the speedup's interval, which luck cannot
    raise: 0.55 at 1×, 0.7 at 2×, 0.82 at 4×.
    """
    if record.blame == "candidate":
        return 0.0
    if record.status is Status.OK and record.rank is not None and record.speedup_lo is not None:
        low = max(0.0, record.speedup_lo)
        return _FOR_RIGHT + (1.0 - _FOR_RIGHT) * low / (1.0 + low)
    return _FOR_RIGHT if record.status is Status.OK or record.reason_code is ReasonCode.NOT_TIMED else None


@dataclass(frozen=True)
class Scores:
    """`n` samples, of which `correct`; `fast` has fast_p for each of `THRESHOLDS`.

    `open` counts for each threshold the samples whose interval holds it, so that another run may count them otherwise;
    at 1 also those whose word is UNSURE. `mean` is the geometric mean speedup of the correct ones that were timed,
    `timed` of them.
    """

    n: int
    correct: int
    fast: tuple[float, ...]
    open: tuple[int, ...]
    mean: Interval | None
    timed: int

    @property
    def correctness_rate(self) -> float:
        return self.correct / self.n if self.n else math.nan


@dataclass(frozen=True)
class DeviceScores:
    """The scores of one device: with each problem's best candidate as its sample, and with every candidate as one.

    `uuid` is that of a GPU; none where several shared the work. `unsolved` names the problems without a correct
    candidate, `left_out` those whose candidates nothing here could run; `candidates_left_out` counts such candidates.
    `unshown` names the problems left out since no row of theirs shows its work. `over` names what the speedups are
    over, several files where problems have baselines of their own; `without_baseline` the problems left out since
    theirs was not ok.
    """

    device_name: str
    uuid: str | None
    of_problems: Scores
    of_candidates: Scores
    unsolved: tuple[str, ...]
    left_out: tuple[str, ...]
    candidates_left_out: int
    unshown: tuple[str, ...] = ()
    over: tuple[str, ...] = ("eager",)
    without_baseline: tuple[str, ...] = ()


def scores_of(runs: Iterable[ResultFile], without_candidate: Sequence[str] = ()) -> list[DeviceScores]:
    """The scores of each device that the runs are from; GPUs of one model that shared the work between them are one.

    `without_candidate` are problems that were asked for and had no candidate: KernelBench counts a missing sample as
    a failed one, and so do these. Runs over eager come first, then those over files of the user's.
    """
    over_eager, over_files = [], []
    for run in runs:
        (over_files if any(record.baseline_hash for record in run.records) else over_eager).append(run)
    scores = _scores_over_alike(over_eager, without_candidate)
    return scores + _scores_over_alike(over_files, () if over_eager else without_candidate)


def _scores_over_alike(runs: Sequence[ResultFile], without_candidate: Sequence[str]) -> list[DeviceScores]:
    by_device: dict[tuple[object, ...], list[ResultFile]] = {}
    for run in runs:
        by_device.setdefault(run.device, []).append(run)
    by_model: dict[tuple[str | None, str], list[list[ResultFile]]] = {}
    for each in by_device.values():
        by_model.setdefault((each[0].device_kind, each[0].device_name), []).append(each)
    groups: list[list[ResultFile]] = []
    for devices in by_model.values():
        groups += [[run for each in devices for run in each]] if _share(devices) else devices
    return [_of_device(each, without_candidate) for each in groups]


def _share(devices: Sequence[Sequence[ResultFile]]) -> bool:
    """Whether no candidate has a row on two of the devices in their newest runs, as after a run with --devices."""
    judged = []
    for runs in devices:
        newest: dict[str, list[Record]] = {}
        for run in sorted(runs, key=lambda run: run.utc):
            newest |= _by_problem(run)
        judged.append({(name, record.candidate) for name, records in newest.items() for record in records})
    return sum(map(len, judged)) == len(set().union(*judged))


def _by_problem(run: ResultFile) -> dict[str, list[Record]]:
    """The candidates' rows of a run by what was asked: problem, sizes and mode."""
    by_problem: dict[str, list[Record]] = {}
    for record in run.records:
        if record.role == "candidate":
            mode = "" if record.mode in (None, "forward") else record.mode
            by_problem.setdefault(" ".join(filter(None, (record.problem, record.sizes, mode))), []).append(record)
    return by_problem


def _of_device(runs: Sequence[ResultFile], without_candidate: Sequence[str]) -> DeviceScores:
    with_records: dict[str, list[tuple[ResultFile, list[Record]]]] = {}
    without_baseline: dict[str, None] = {}
    for run in sorted(runs, key=lambda run: run.utc):
        for name, records in _by_problem(run).items():
            if fault_of(run.records) is not None:
                without_baseline[name] = None
            else:
                with_records.setdefault(name, []).append((run, records))
    # A candidate that was judged twice is one sample: its newest.
    problems = {
        name: {record.candidate: record for _, record in sorted(newest_rows(each), key=lambda row: row[0].utc)}
        for name, each in with_records.items()
    }
    best, every, unsolved, left_out, not_tried, unshown = [], [], list(without_candidate), [], 0, []
    for name, by_candidate in problems.items():
        records = [record for record in by_candidate.values() if shows_its_work(record)]
        if not records:
            unshown.append(name)
            continue
        tried = [record for record in records if record.status not in _NOT_TRIED]
        not_tried += len(records) - len(tried)
        every += tried
        if tried:
            best.append(max(tried, key=_goodness))
        if not tried or best[-1].status not in _CORRECT:
            (unsolved if tried else left_out).append(name)
    missing = len(without_candidate)
    cards = {record.uuid for run in runs for record in run.records}
    baselines = (record.baseline for by_candidate in problems.values() for record in by_candidate.values())
    return DeviceScores(
        runs[0].device_name, cards.pop() if len(cards) == 1 else None,
        _scores(best, len(best) + missing), _scores(every, len(every) + missing), tuple(unsolved), tuple(left_out),
        not_tried, tuple(unshown), tuple(dict.fromkeys(filter(None, baselines))) or ("eager",),
        tuple(name for name in without_baseline if name not in problems),
    )


def _goodness(record: Record) -> tuple[bool, float]:
    return record.status in _CORRECT, _vouched_speedup(record) if record.status is Status.OK else 0.0


def _vouched_speedup(record: Record) -> float:
    """Its speedup as far as it is vouched for, 0 where it has none: what a clock leaves open raises no score."""
    return vouched_speedup(record.speedup, record.time_us, record.unvouched_us)


def _scores(records: Sequence[Record], n: int) -> Scores:
    correct = [record for record in records if record.status in _CORRECT]
    with_intervals = [(each, speedup_interval(each)) for each in correct if each.status is Status.OK]
    timed = [
        replace(interval, estimate=max(interval.lo, _vouched_speedup(record))) for record, interval in with_intervals
        if interval is not None
    ]
    fast = [len(correct) if p == 0 else sum(each.estimate > p for each in timed) for p in THRESHOLDS]
    undecided = [
        sum(_is_open(record, interval, p) for record, interval in with_intervals if interval is not None) if p else 0
        for p in THRESHOLDS
    ]
    return Scores(
        n, len(correct), tuple(count / n if n else math.nan for count in fast), tuple(undecided),
        geometric_mean(timed) if timed else None, len(timed),
    )


def _is_open(record: Record, interval: Interval, threshold: float) -> bool:
    """Whether another run may find the speedup beyond `threshold`. On 1 the word, which knows the control, counts."""
    return interval.lo <= threshold < interval.hi or (threshold == 1.0 and record.call == "UNSURE")


def result_fields(record: Record, samples: Mapping[str, Any]) -> dict[str, Any]:
    """compiled, correctness, runtime, runtime_stats and metadata.

    The judgement stays ours: `correctness` says what the status says, and times are of verified launches. As in
    KernelBench, `runtime` and `runtime_stats` are milliseconds, and `runtime` is -1.0 where nothing was timed.
    """
    right = _is_right(record)
    stats = _runtime_stats(record, samples) if right else {}
    return {
        "compiled": _compiled(record), "correctness": right, "runtime": stats.get("mean", -1.0), "runtime_stats": stats,
        "metadata": _metadata(record, samples),
    }


def _is_right(record: Record) -> bool:
    """Whether every output that was asked for was right, timed or not."""
    return record.status in _CORRECT or record.reason_code is ReasonCode.NOT_TIMED


def _compiled(record: Record) -> bool:
    if record.status is Status.SKIPPED:
        return record.reason_code is ReasonCode.NEEDS_CPU
    return record.status is not Status.BUILD_FAILED and record.reason_code is not ReasonCode.BUILD_TIMEOUT


def _runtime_stats(record: Record, samples: Mapping[str, Any]) -> dict[str, Any]:
    times_ms = [time_us / 1e3 for worker in samples.get("players", []) for time_us in worker["candidate_us"]]
    return {} if not times_ms else {
        "mean": statistics.fmean(times_ms), "std": statistics.pstdev(times_ms), "min": min(times_ms),
        "max": max(times_ms), "median": statistics.median(times_ms), "num_trials": len(times_ms),
        "hardware": record.device_name, "device": record.device_kind,
    }


def _metadata(record: Record, samples: Mapping[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"hardware": record.device_name, "device": record.device_kind}
    errors = samples.get("errors", [])
    if errors:
        metadata["correctness_trials"] = f"({sum(map(_passed, errors))} / {len(errors)})"
    if _is_right(record):
        return metadata
    if record.status is Status.CHECKED:  # no error, and no verdict at the problem's own sizes either
        return {**metadata, "checked": record.reason}
    kinds = {
        ReasonCode.RAISED: "runtime_error", ReasonCode.BUILD_TIMEOUT: "compilation_error",
        Status.BUILD_FAILED: "compilation_error", Status.INCORRECT: "correctness_issue",
        Status.IMPRECISE: "correctness_issue",
    }
    name = kinds.get(record.reason_code) or kinds.get(record.status, "runtime_error")
    return {**metadata, name: record.reason, f"{name}_name": record.reason_code.value or record.status.value}


def _passed(error: Mapping[str, Any]) -> bool:
    pairs = ((error["max_u"], error["allowed_max_u"]), (error["rms_u"], error["allowed_rms_u"]))
    return all(allowed is None or (measured is not None and measured <= allowed) for measured, allowed in pairs)
