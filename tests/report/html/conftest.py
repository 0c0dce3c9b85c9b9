"""Results folders made by hand: a GPU whose clock sank, runs a week apart, and names that try to leave the page."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.results.record import Record
from harness.results.writer import csv_text

HOSTILE_NAME = '</script><script>document.title="taken"</script>'
HOSTILE_REASON = '<img src=x onerror=\'document.title="taken"\'> --> ]]> {{ 7*7 }} & "quoted"'
HOSTILE_LOG = '</pre><!-- <script>document.title="taken"</script> <svg onload=document.title="taken">'


@pytest.fixture
def h200(make_record):
    """A record of a timed candidate on an H200; keywords change it."""

    def make(**changes) -> Record:
        plain = {
            "device_kind": "cuda",
            "problem_hash": "a" * 16,
            "device_name": "NVIDIA H200",
            "kind": "custom",
            "precision_class": "fp32",
            "time_us": 600.0,
            "baseline": "eager",
            "baseline_us": 2700.0,
            "speedup": 4.5,
            "speedup_lo": 4.4,
            "speedup_hi": 4.6,
            "confidence": 0.99,
            "call": "FASTER",
            "useful_flops": 2.0e10,
            "useful_bytes": 1.0e8,
            "tflops": 33.3,
            "canary_gbps": 4000.0,
            "percent_of_sol": 11.0,
            "sol_us": 66.0,
            "bound_by": "compute",
        }
        return make_record(**(plain | changes))

    return make


def worker(rounds: int = 4, launches: int = 2, *, times: bool = True, clocks=None) -> dict:
    """What the JSON lines keep of one worker: `launches` of each arm in each half of a round, with a reading after it.
    """
    pairs = 2 * rounds
    clocks = clocks or [1980 - 30 * (number // 2) for number in range(pairs)]
    body = {
        "candidate_us": [600.0 + number for number in range(pairs * launches)],
        "baseline_us": [2700.0 + number for number in range(pairs * launches)],
        "log_ratios": [1.5 + 0.001 * number for number in range(rounds)],
        "telemetry": [
            {"sm_mhz": clock, "mem_mhz": 3201, "watts": 400.0, "celsius": 40.0, "throttle": "", "other_processes": 0}
            for clock in clocks
        ],
    }
    return (
        body | {"read_at_s": [0.5 * (number + 1) for number in range(pairs)], "read_kept": [True] * pairs}
        if times
        else body
    )


def samples(**changes) -> dict:
    body = {
        "players": [worker()],
        "errors": [
            {
                "sizes": "M=4096",
                "family": "as given",
                "max_u": 60.0,
                "rms_u": 6.0,
                "eager_max_u": 70.0,
                "allowed_max_u": 280.0,
            },
            {
                "sizes": "M=31",
                "family": "as given",
                "max_u": 3.0,
                "rms_u": 1.0,
                "eager_max_u": 2.0,
                "allowed_max_u": 4.0,
            },
            {
                "sizes": "M=4096",
                "family": "identity",
                "max_u": 0.0,
                "rms_u": 0.0,
                "eager_max_u": 0.0,
                "allowed_max_u": 8.0,
            },
        ],
        "kernels": [["tile_kernel", 598.0, "own"]],
        "build": {
            "built_by": "nvcc 13.0",
            "warnings": "",
            "log": "ptxas info: Used 32 registers",
            "kernels": [
                {
                    "kernel": "tile",
                    "arch": "sm_90a",
                    "registers": 32,
                    "spill_bytes": 0,
                    "shared_bytes": 8192,
                    "stack_bytes": 0,
                }
            ],
        },
    }
    return body | changes


def write_run(folder: Path, stem: str, rows: list[tuple[Record, dict | None]]) -> Path:
    """A CSV and its JSON lines, as a run writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}.csv"
    path.write_text(csv_text(record for record, _ in rows), encoding="utf-8")
    lines = [
        json.dumps(
            {"run_id": record.run_id, "candidate": record.candidate, "role": record.role, "samples": found}
        ) + "\n"
        for record, found in rows
        if found is not None
    ]
    path.with_suffix(".jsonl").write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def recorded() -> SimpleNamespace:
    """`samples(**changes)` and `worker(...)` as JSON bodies, and `write_run(folder, stem, rows)`."""
    return SimpleNamespace(samples=samples, worker=worker, write_run=write_run)


@pytest.fixture
def results(tmp_path, h200, make_record) -> Path:
    """Two runs on an H200 a week apart, of which the older has a candidate more, and one run on a CPU."""
    folder = tmp_path / "results" / "tril_matmul"
    same = {"speedup": 1.0, "speedup_lo": 0.999, "speedup_hi": 1.001, "call": "SAME", "time_us": 2700.0}
    eager = h200(candidate="eager", role="baseline", **same)
    old = [
        (h200(candidate="tiled", speedup=3.0, speedup_lo=2.9, speedup_hi=3.1, source_hash="0" * 16), samples()),
        (h200(candidate="left_behind", problem_hash="e" * 16), None),  # of another text of the problem
        (eager, None),
    ]
    write_run(folder / "nvidia-h200", "20260501T123005Z", old)
    week = "2026-05-08T09:00:00Z"
    new = [
        (h200(utc=week, candidate="tiled", rank=1, source_hash="1" * 16, registers=32), samples()),
        (h200(utc=week, candidate="eager", role="baseline", **same), None),
        (
            make_record(
                utc=week,
                candidate="wrong",
                status="incorrect",
                reason_code="wrong_values",
                reason="wrong at (3, 5)",
                device_kind="cuda",
                device_name="NVIDIA H200",
            ),
            samples(players=[]),
        ),
    ]
    write_run(folder / "nvidia-h200", "20260508T090000Z", new)
    cpu = {"device_kind": "cpu", "device_name": "AMD EPYC", "sizes": "M=768", "percent_of_sol": None, "sol_us": None}
    rows = [
        (
            h200(
                **cpu,
                candidate="tiled",
                source_hash="1" * 16,
                speedup=1.2,
                speedup_lo=1.1,
                speedup_hi=1.3,
                call="FASTER",
            ),
            None,
        )
    ]
    write_run(folder / "cpu-amd-epyc", "20260502T000000Z", rows)
    return tmp_path / "results"


@pytest.fixture
def hostile_results(tmp_path, h200, make_record) -> Path:
    """A run whose every text is an attempt to leave its place in the page."""
    folder = tmp_path / "hostile" / "tril_matmul" / "nvidia-h200"
    failed = {"status": "crashed", "reason_code": "signal", "reason": HOSTILE_REASON, "warnings": HOSTILE_REASON}
    build = {
        "built_by": HOSTILE_NAME,
        "warnings": HOSTILE_LOG,
        "log": HOSTILE_LOG,
        "kernels": [{"kernel": HOSTILE_NAME, "arch": HOSTILE_NAME}],
    }
    errors = [{"family": HOSTILE_NAME, "sizes": HOSTILE_REASON, "max_u": 1.0, "eager_max_u": 1.0, "allowed_max_u": 8.0}]
    hostile = samples(build=build, errors=errors, kernels=[[HOSTILE_NAME, 1.0, HOSTILE_REASON]])
    rows = [
        (
            h200(
                candidate=HOSTILE_NAME,
                problem=HOSTILE_NAME,
                device_name=HOSTILE_REASON,
                sizes=HOSTILE_NAME,
                call=HOSTILE_NAME,
                baseline=HOSTILE_REASON,
                config=HOSTILE_LOG,
                throttle=HOSTILE_LOG,
            ),
            hostile,
        ),
        (
            make_record(
                candidate="'\"--><b>" + HOSTILE_REASON,
                problem=HOSTILE_NAME,
                device_kind="cuda",
                device_name=HOSTILE_REASON,
                sizes=HOSTILE_NAME,
                **failed,
            ),
            hostile,
        ),
    ]
    write_run(folder, "20260501T123005Z", rows)
    return tmp_path / "hostile"
