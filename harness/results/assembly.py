"""From what a run found out to a record: each field filled from the one place that knows it.

What all records of one run share, the device's own rates among it, is measured before the first of them.
"""

from __future__ import annotations

import functools
import hashlib
import math
import secrets
import statistics
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from harness import __version__
from harness.build.compiler_report import of_each
from harness.model.paths import IS_INSTALLED, REPOSITORY
from harness.model.peaks import load_peaks
from harness.model.physics import SpeedLimits, percent_of_sol, rates, speed_limits
from harness.model.problem import Problem
from harness.model.problem_notes import ProblemNote, note_text
from harness.model.settings import Settings
from harness.model.sizes_text import sizes_text
from harness.model.verdict import Verdict
from harness.results.record import Record
from harness.timing.probes.schedule import Probe
from harness.timing.stats import typical_us

if TYPE_CHECKING:
    from harness.build.product import Build
    from harness.device.backend import Backend
    from harness.judge.judgement import Judgement
    from harness.timing.timings import Timing

_LOG_CHARACTERS = 20_000
# The times of each probe that holds some against others, in the raw samples.
_PROBE_NAMES = {"early": Probe.EARLY_READ, "completed": Probe.LATE_INPUT, "valued": Probe.INPUT_VALUE}
# For how long canaries stand for their device: problem after problem of a suite needs them, each after a few seconds.
CANARIES_KEEP_S = 60.0

# What a record has from `RunFacts` as it is.
_SHARED = (
    "run_id", "utc", "config", "config_hash", "command", "useful_flops", "useful_bytes", "canary_gbps", "canary_tflops",
    "event_floor_us", "sandbox",
)
_EXTRAS = ("warm_us", "back_to_back_us", "graph_us", "joules")


@dataclass(frozen=True)
class RunFacts:
    """What all records of one run share."""

    run_id: str
    utc: str
    config: str
    config_hash: str
    command: str | None
    problem: Problem
    sizes: dict[str, int]
    backend: Backend
    limits: SpeedLimits | None
    useful_flops: float | None
    useful_bytes: float | None
    canary_gbps: float
    canary_tflops: float | None
    event_floor_us: float
    canaries_at_s: float
    sandbox: str


@dataclass(frozen=True)
class Canaries:
    """Known rates of a device, and what its clock reads around nothing, measured at `at_s` of time.monotonic()."""

    gbps: float
    tflops: float | None
    event_floor_us: float
    at_s: float


_canaries: WeakKeyDictionary[Backend, Canaries] = WeakKeyDictionary()


def canaries_of(backend: Backend) -> Canaries:
    """The canaries of `backend`, measured now or within the last `CANARIES_KEEP_S` seconds."""
    kept = _canaries.get(backend)
    if kept is None or time.monotonic() - kept.at_s > CANARIES_KEEP_S:
        kept = Canaries(backend.copy_gbytes_s(), backend.multiply_add_tflops(), backend.event_floor_us(), time.monotonic())
        _canaries[backend] = kept
    return kept


def measured_facts(
    problem: Problem, sizes: Mapping[str, int], settings: Settings, backend: Backend, utc: str, *, command: str | None,
    sandbox: str,
) -> RunFacts:
    """The facts of a run that begins at `utc`, canaries and the limits of the device among them."""
    flops = problem.flops.evaluate(sizes) if problem.flops else None
    useful_bytes = problem.bytes.evaluate(sizes) if problem.bytes else None
    canaries = canaries_of(backend)
    peaks = None if backend.limits.is_host else load_peaks(backend.identity.name)
    limits = speed_limits(flops, useful_bytes, canaries.gbps, peaks, problem.accuracy.precision_class)
    return RunFacts(
        run_id=secrets.token_hex(8), utc=utc, config=settings.name, config_hash=settings.hash, command=command,
        problem=problem, sizes=sizes, backend=backend, limits=limits, useful_flops=flops, useful_bytes=useful_bytes,
        canary_gbps=canaries.gbps, canary_tflops=canaries.tflops, event_floor_us=canaries.event_floor_us,
        canaries_at_s=canaries.at_s, sandbox=f"{sandbox}; {backend.transport}",
    )


def record_of(
    facts: RunFacts, *, name: str, role: str, source_hash: str | None, language: str | None, verdict: Verdict,
    build: Build | None, judgement: Judgement | None, parameters: str | None = None,
    problem_notes: Iterable[ProblemNote] = (),
) -> Record:
    """The record of one entry; `build` and `judgement` are None where it did not get so far."""
    warnings = [*(build.warnings.splitlines() if build else ()), *(judgement.warnings if judgement else ())]
    problem = facts.problem
    return Record(
        **{name: getattr(facts, name) for name in _SHARED},
        **{name: getattr(facts.limits, name) if facts.limits else None for name in ("sol_us", "bound_by", "floor_us")},
        harness_hash=harness_hash(), harness_version=__version__, dirty=is_dirty(), problem=problem.name,
        problem_hash=problem.hash, sizes=sizes_text(facts.sizes), dtype=problem.dtype, mode=problem.mode,
        candidate=name, source_hash=source_hash, parameters=parameters, role=role, language=language,
        status=verdict.status, reason_code=verdict.reason_code, reason=verdict.reason or None,
        blame="machine" if judgement is not None and judgement.lacked_room else None,
        warnings="\n".join(warnings) or None, problem_note=note_text(problem_notes),
        **_build_fields(build), **_judgement_fields(judgement, facts), **_device_fields(facts.backend),
        **state_fields(facts.backend, judgement.timings if judgement else ()),
    )


def samples_of(judgement: Judgement | None, build: Build | None = None) -> dict[str, Any]:
    """The raw samples for the JSON lines: every kept time and ratio, every error, every kernel, what compilers said,
    and the evidence on a launch that failed. A part that the entry did not come to is left out.
    """
    if build is None:
        return _judgement_samples(judgement)
    return {"build": {
        "built_by": build.built_by, "headers": build.headers, "seconds": build.seconds, "cached": build.cached,
        "warnings": build.warnings, "kernels": [asdict(kernel) for kernel in build.kernels],
        "compiler_warnings": build.compiler_warnings.splitlines(), "log": build.log[-_LOG_CHARACTERS:],
    }} | _judgement_samples(judgement)


def _judgement_samples(judgement: Judgement | None) -> dict[str, Any]:
    if judgement is None:
        return {}
    told: dict[str, Any] = {"evidence": judgement.evidence.to_json()} if judgement.evidence else {}
    told |= {"traceback": judgement.traceback} if judgement.traceback is not None else {}
    told |= {"clocks": judgement.clocks.to_json()} if judgement.clocks else {}
    return told | {
        "players": [
            {
                "candidate_us": timing.candidate_us, "baseline_us": timing.baseline_us,
                "log_ratios": timing.log_ratios, "inside_us": timing.in_worker_us,
                "inside_log_ratios": timing.in_worker_log_ratios,
                "over_processes": asdict(timing.pooled_baseline) if timing.is_pooled else None,
                "wall_less_time_us": timing.wall_less_time_us, "window_less_time_us": timing.window_less_time_us,
                "cooling_us": timing.flush_us, "host_us": timing.host_us,
                **{
                    name: result.to_json() if (result := timing.probe_results.get(probe)) else None
                    for name, probe in _PROBE_NAMES.items()
                },
                "unheld_overhead_us": timing.ungated_overhead_us, "tails_us": timing.tails_us,
                "telemetry": [asdict(reading) for reading in timing.telemetry],
                "read_at_s": timing.read_at_s, "read_kept": timing.read_kept,
            }
            for timing in judgement.timings
        ],
        "errors": [
            {
                "sizes": each.sizes, "family": each.family, "max_u": each.max_u, "rms_u": each.rms_u,
                "eager_max_u": each.eager_max_u, "allowed_max_u": each.bounds.max_u, "allowed_rms_u": each.bounds.rms_u,
            }
            for each in judgement.figures
        ],
        "kernels": list(judgement.provenance.kernels) if judgement.provenance else [],
    }


def baseline_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@functools.lru_cache(maxsize=1)
def harness_hash() -> str:
    """The first 16 hex digits of the SHA-256 over the names and texts of this software's own modules."""
    digest = hashlib.sha256()
    for path in sorted(path for path in (REPOSITORY / "harness").rglob("*") if path.suffix in (".py", ".cpp")):
        digest.update(str(path.relative_to(REPOSITORY)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@functools.lru_cache(maxsize=1)
def is_dirty() -> bool | None:
    """Whether the harness's own checkout has changes that are not committed; None when git cannot say."""
    if IS_INSTALLED:  # git would speak of a checkout that the environment happens to lie in
        return None
    try:
        subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, timeout=10, check=True)
        status = subprocess.run(
            ["git", "status", "--porcelain", "--", "harness", "run.py", "configs"], cwd=REPOSITORY,
            capture_output=True, text=True, timeout=10, check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return bool(status.stdout.strip())


def _build_fields(build: Build | None) -> dict[str, Any]:
    if build is None:
        return {}

    def largest(name: str) -> int | None:
        values = (getattr(kernel, name) for kernel in build.kernels)
        return max((value for value in values if value is not None), default=None)

    return {
        "build_s": build.seconds, "cached": build.cached, "arch": build.arch, "headers": build.headers,
        "registers": largest("registers"), "spills": largest("spill_bytes"), "shared_bytes": largest("shared_bytes"),
        "stack_bytes": largest("stack_bytes"), "constant_bytes": largest("constant_bytes"),
        "per_kernel": of_each(build.kernels) or None,
    }


def _judgement_fields(judgement: Judgement | None, facts: RunFacts) -> dict[str, Any]:
    if judgement is None:
        return {}
    fields: dict[str, Any] = {name: getattr(judgement, name) for name in ("truth", "peak_bytes", "state_moved")}
    if judgement.memory is not None:
        fields["memory_step"] = judgement.memory.step.value
    if judgement.worst is not None:
        fields |= {
            "err_max_u": max(each.max_u for each in judgement.figures), "err_rms_u": judgement.worst.rms_u,
            "eager_err_max_u": max(each.eager_max_u for each in judgement.figures),
            "families": ", ".join(dict.fromkeys(each.family for each in judgement.figures)),
            "precision_class": judgement.precision_class,
        }
    if judgement.provenance is not None:
        fields["kind"] = judgement.provenance.kind
    if judgement.timings and judgement.speedup is not None:
        fields |= _timing_fields(judgement, facts)
    return fields


def _timing_fields(judgement: Judgement, facts: RunFacts) -> dict[str, Any]:
    timings = judgement.timings
    times_us = sorted(time_us for timing in timings for time_us in timing.candidate_us)
    baseline_us = [time_us for timing in timings for time_us in timing.baseline_us]
    end_to_end_us = [timing.end_to_end_us for timing in timings if timing.end_to_end_us is not None]
    hidden = [timing.launch_hidden for timing in timings]  # whether no queue had to be let go early; None: none is held
    time_us = typical_us(times_us)
    tflops, gbytes_s = rates(facts.useful_flops, facts.useful_bytes, time_us)
    return {
        "time_us": time_us, "unvouched_us": max(timing.unvouched_us for timing in timings),
        "p10_us": _percentile(times_us, 0.1), "p90_us": _percentile(times_us, 0.9),
        "launches": len(times_us), "rounds": sum(len(timing.log_ratios) for timing in timings),
        "players": len(timings), "dropped": sum(timing.dropped for timing in timings), "baseline": "eager",
        **_passes(timings), **_other_baselines(timings), "baseline_us": typical_us(baseline_us),
        "speedup": judgement.speedup.estimate, "speedup_lo": judgement.speedup.lo, "speedup_hi": judgement.speedup.hi,
        "confidence": timings[0].confidence, "call": judgement.word,
        "e2e_us": statistics.median(end_to_end_us) if end_to_end_us else None,
        "timer": timings[0].timer, "l2_policy": facts.backend.l2_policy, "input_sets": timings[0].input_sets,
        "launch_hidden": None if None in hidden else all(hidden), "tflops": tflops, "gbytes_s": gbytes_s,
        "percent_of_sol": percent_of_sol(facts.limits, time_us),
        **({name: getattr(judgement.extras, name) for name in _EXTRAS} if judgement.extras is not None else {}),
    }


def _other_baselines(timings: Sequence[Timing]) -> dict[str, float | int]:
    """The baseline's time inside the worker, where that agrees, and its mean over several processes."""
    fields: dict[str, float | int] = {}
    if all(timing.agreeing for timing in timings):
        fields["baseline_inside_us"] = typical_us([each for timing in timings for each in timing.in_worker_us])
    if all(timing.is_pooled for timing in timings):
        over = timings[0].pooled_baseline
        beside_us = typical_us([each for timing in timings for each in timing.baseline_us])
        fields |= {"baseline_mean_us": beside_us * math.exp(over.shift), "baseline_processes": over.processes}
    return fields


def _passes(timings: Sequence[Timing]) -> dict[str, float]:
    """Medians of the forward passes, and of what the backward passes after them took; nothing without those."""
    medians = {}
    for whose, totals in (("", "candidate_us"), ("baseline_", "baseline_us")):
        times_us = [each for timing in timings for each in getattr(timing, totals)]
        forward_us = [each for timing in timings for each in getattr(timing, f"{whose}forward_us")]
        if forward_us and len(forward_us) == len(times_us):
            medians[f"{whose}forward_us"] = statistics.median(forward_us)
            medians[f"{whose}backward_us"] = statistics.median(a - b for a, b in zip(times_us, forward_us))
    return medians


def _device_fields(backend: Backend) -> dict[str, Any]:
    device = backend.identity
    return {
        "device_kind": device.kind, "device_name": device.name, "uuid": device.uuid,
        "sm": f"sm_{device.sm.replace('.', '')}" if device.sm else None, "sm_count": device.sm_count,
        "l2_bytes": device.l2_bytes, "memory_bytes": device.memory_bytes, "driver": device.driver, "cuda": device.cuda,
        "torch": device.torch, "power_limit_w": device.power_limit_w,
    }


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def state_fields(backend: Backend, timings: Sequence[Timing]) -> dict[str, Any]:
    """Medians over the readings after each round, all reasons for throttling, and for how long limits held clocks down.

    Of what was not timed it is one reading now. Processes of the harness's own may be on the device then, and are not
    told from others: how many there are stays unknown.
    """
    readings = [reading for timing in timings for reading in timing.telemetry]
    readings = readings or [replace(backend.telemetry(set()), other_processes=None)]

    def typical(name: str) -> float | None:
        values = [getattr(reading, name) for reading in readings if getattr(reading, name) is not None]
        return statistics.median(values) if values else None

    throttles = [reading.throttle for reading in readings if reading.throttle is not None]
    names = sorted({name for throttle in throttles for name in throttle.split("+") if name})
    others = [reading.other_processes for reading in readings if reading.other_processes is not None]
    return {
        **{name: typical(name) for name in ("sm_mhz", "mem_mhz", "watts", "celsius")},
        "throttle": ("+".join(names) or "none") if throttles else None,
        "power_violation_ms": _milliseconds(timing.violations.power_ns for timing in timings),
        "thermal_violation_ms": _milliseconds(timing.violations.thermal_ns for timing in timings),
        "other_processes": max(others, default=None),
    }


def _milliseconds(of_workers_ns: Iterable[int | None]) -> float | None:
    """Of all workers together; None where it is not known of one."""
    known = list(of_workers_ns)
    return None if not known or None in known else sum(known) / 1e6
