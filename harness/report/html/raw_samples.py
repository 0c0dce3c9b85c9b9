"""The raw samples beside a CSV, read back from its JSON lines into values that a page can trust the type of.

A file may be missing, cut short, or older than a part that is wanted: what is not there is None or empty, and the page
says "not recorded". A line that is no JSON of ours costs itself and a note.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from harness.timing.stats import baselines_agree, typical_us

_MOST_BYTES = 64 << 20
_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Reading:
    """One look at the device. `at_s` counts from the start of the rounds; `kept` is False for a dropped round."""

    sm_mhz: float | None
    watts: float | None
    celsius: float | None
    throttle: str | None
    at_s: float | None
    kept: bool | None


@dataclass(frozen=True)
class Worker:
    """What one process of the candidate was timed at: µs per launch, in order, and a log-ratio per round.

    `in_worker_log_ratios` are over the baseline in that same process; `shift` is the log of the baseline's mean over
    several processes less that of its time beside the candidate, where the speedup is over that mean.
    """

    candidate_us: tuple[float, ...]
    baseline_us: tuple[float, ...]
    log_ratios: tuple[float, ...]
    readings: tuple[Reading, ...]
    in_worker_log_ratios: tuple[float, ...] = ()
    shift: float | None = None

    @property
    def ratios(self) -> tuple[float, ...]:
        """The log-ratios that the speedup comes from."""
        in_worker, outside = self.in_worker_log_ratios, self.log_ratios
        if self.shift is not None:
            return tuple(each + self.shift for each in outside)
        if not in_worker or len(in_worker) != len(outside) or not self.baseline_us:
            return outside
        return in_worker if baselines_agree(in_worker, outside, typical_us(self.baseline_us)) else outside


@dataclass(frozen=True)
class FamilyError:
    """Errors on one set of inputs, in u, beside eager's on the same and the largest allowed."""

    family: str
    sizes: str
    max_u: float | None
    eager_max_u: float | None
    allowed_max_u: float | None

    @property
    def share(self) -> float:
        """Error over what is allowed; infinite where the error is no number."""
        if self.max_u is None:
            return math.inf
        return self.max_u / self.allowed_max_u if self.allowed_max_u else 0.0


@dataclass(frozen=True)
class RanKernel:
    """A kernel of the profiled launch, its time in µs, and whose it was."""

    name: str
    time_us: float | None
    whose: str


@dataclass(frozen=True)
class CompiledKernel:
    """What ptxas said of a kernel."""

    kernel: str
    arch: str
    registers: int | None
    spill_bytes: int | None
    shared_bytes: int | None
    stack_bytes: int | None


@dataclass(frozen=True)
class BuildReport:
    """What built it, the kernels that came out, and the compilers' own words."""

    built_by: str
    warnings: str
    log: str
    kernels: tuple[CompiledKernel, ...]


@dataclass(frozen=True)
class Samples:
    """Everything kept beside one row; `build` None where no report was recorded."""

    players: tuple[Worker, ...] = ()
    errors: tuple[FamilyError, ...] = ()
    kernels: tuple[RanKernel, ...] = ()
    build: BuildReport | None = None


def read_samples(csv_path: Path, note: Callable[[str], None]) -> dict[tuple[str, str, str], Samples]:
    """The samples beside the CSV, by run, name and role; empty when there is no such file. `note` takes sentences.

    A file may hold several runs: one for each sizes, or for each GPU of a model.
    """
    path = csv_path.with_suffix(".jsonl")
    try:
        if path.stat().st_size > _MOST_BYTES:
            note(f"{path}: passed over, it is larger than {_MOST_BYTES >> 20} MB")
            return {}
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    samples: dict[tuple[str, str, str], Samples] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or not isinstance(row.get("candidate"), str):
            note(f"{path}:{number}: passed over, it is no line of samples")
            continue
        key = str(row.get("run_id", "")), row["candidate"], str(row.get("role", "candidate"))
        samples[key] = _samples(_mapping(row.get("samples")))
    return samples


def _samples(body: Mapping[str, Any]) -> Samples:
    build = body.get("build")
    kernels = (each for each in _items(body.get("kernels")) if isinstance(each, list) and len(each) >= 3)
    return Samples(
        players=tuple(_worker(each) for each in _mappings(body.get("players"))),
        errors=tuple(_typed(FamilyError, each) for each in _mappings(body.get("errors"))),
        kernels=tuple(RanKernel(str(name), _number(time_us), str(whose)) for name, time_us, whose, *_ in kernels),
        build=_build(build) if isinstance(build, dict) else None,
    )


def _typed(kind: type[_Part], body: Mapping[str, Any], **others: Any) -> _Part:
    """The fields of `kind` that are texts or numbers, by their names, and the `others`."""
    read = {"str": lambda value: str(value or ""), "float | None": _number, "int | None": _whole}
    values = {each.name: read[each.type](body.get(each.name)) for each in fields(kind) if each.type in read}
    return kind(**values | others)


def _worker(body: Mapping[str, Any]) -> Worker:
    at_s, kept = _items(body.get("read_at_s")), _items(body.get("read_kept"))
    readings = []
    for position, each in enumerate(_mappings(body.get("telemetry"))):
        throttle = each.get("throttle")
        readings.append(_typed(
            Reading, each, throttle=throttle if isinstance(throttle, str) else None,
            at_s=_number(at_s[position]) if position < len(at_s) else None,
            kept=bool(kept[position]) if position < len(kept) else None,
        ))
    timed = (_numbers(body.get(name)) for name in ("candidate_us", "baseline_us", "log_ratios"))
    shift = _number(_mapping(body.get("over_processes")).get("shift"))
    return Worker(*timed, tuple(readings), _numbers(body.get("inside_log_ratios")), shift)


def _build(body: Mapping[str, Any]) -> BuildReport:
    kernels = tuple(_typed(CompiledKernel, each) for each in _mappings(body.get("kernels")))
    warnings = (str(body.get("warnings") or ""), *map(str, _items(body.get("compiler_warnings"))))
    return _typed(BuildReport, body, warnings="\n".join(filter(None, warnings)), kernels=kernels)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [each for each in _items(value) if isinstance(each, dict)]


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _numbers(value: Any) -> tuple[float, ...]:
    return tuple(number for each in _items(value) if (number := _number(each)) is not None)
