"""One process that times one function twice, in each of several ways, and prints the ratios.

Started by timing_vs_peers.py, where a peer is timed as its users do, the function twice in a row in one process, and by
against_itself.py, which asks for many of our own. It is told what to do in a line of JSON on its standard input.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from harness.model.errors import HarnessError  # noqa: E402
from harness.protocol.clocks.idle_threads import shorten_spinning  # noqa: E402

OURS, EVENTS, DO_BENCH, AUTORANGE = "kernel-referee", "mean of 100, L2 flushed", "triton do_bench", "blocked_autorange"
CANDIDATES = REPOSITORY / "candidates" / "tril_matmul"
_TRIALS = 100
_FLUSHED_BYTES = 256 << 20
_AUTORANGE_S = 0.2


def main() -> None:
    """`timing_peers.py ours|peers|controls`: say hello, wait for a line of JSON, answer with a line for each figure."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what others print is not an answer
    if sys.argv[1] == "peers":
        shorten_spinning(os.environ)
    else:
        from harness.sandbox.prestart import prestart

        prestart()  # as the command that judges candidates does
    import torch

    print(json.dumps({"hello": torch.__version__}), file=answers, flush=True)
    asked = json.loads(sys.stdin.readline())

    def tell(figure: dict[str, Any]) -> None:
        print(json.dumps(figure), file=answers, flush=True)

    try:
        if sys.argv[1] == "controls":
            controls(asked, tell)
            return
        for figure in ours(asked) if sys.argv[1] == "ours" else peers(asked):
            tell(figure)
    except HarnessError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("interrupted")


def ours(asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Eager in a worker against eager in the judge, by the command that judges candidates."""
    from harness.judge.run import RunRequest, run
    from harness.model.problem import load_problem
    from harness.model.settings import load_settings
    from harness.report.progress import NullProgress

    problem, settings = load_problem(REPOSITORY / "problems" / "tril_matmul.yaml"), load_settings(asked["config"])
    with tempfile.TemporaryDirectory(prefix="timing-vs-peers-") as folder:
        for size in asked["sizes"]:
            sizes = {"M": size}
            chosen = replace(problem, sizes=sizes, cpu_sizes=sizes, check_sizes=(), baselines=("eager",))
            began = time.perf_counter()
            record = run(RunRequest(chosen, [], asked["device"], settings, Path(folder)), NullProgress()).records[0]
            figure = {"method": OURS, "size": size, "seconds": time.perf_counter() - began}
            if record.speedup is None:
                yield {**figure, "failed": f"{record.status.value}: {record.reason}"}
                continue
            yield {**figure, **_measured(record)}


def controls(asked: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> None:
    """So many times as `asked["controls"]` has for each size, eager in a fresh worker against eager here, on one backend,
    and after it each candidate that is in `asked["beside"]`, likewise.

    Each is judged as a run judges its entries, the next one's worker being started meanwhile; `seconds` is from the
    record before it to its own. None is begun `asked["seconds"]` after the start, of which each size that is left has as
    much as the others: what an early end leaves is of all sizes.
    """
    from harness.device.choice import open_backend
    from harness.device.lock import alone_on
    from harness.judge.build_pool import BuildPool
    from harness.judge.device_run import DeviceRun
    from harness.model.baselines import BASELINES
    from harness.model.candidate import find_candidates
    from harness.model.problem import load_problem
    from harness.model.settings import load_settings
    from harness.report.progress import NullProgress

    class Waiting(NullProgress):
        """Says that another run has the device."""

        def note(self, text: str) -> None:
            tell({"note": text})

    deadline, eager = time.monotonic() + asked["seconds"], BASELINES["eager"]
    problem, settings = load_problem(REPOSITORY / "problems" / "tril_matmul.yaml"), load_settings(asked["config"])
    backend, progress = open_backend(asked["device"]), NullProgress()
    beside = find_candidates(CANDIDATES, only=asked["beside"]) if asked["beside"] else []
    for position, size in enumerate(asked["sizes"]):
        now = time.monotonic()
        if now > deadline:
            return
        share_ends = now + (deadline - now) / (len(asked["sizes"]) - position)
        sizes = {"M": size}
        chosen = replace(problem, sizes=sizes, cpu_sizes=sizes, check_sizes=(), baselines=("eager",))
        with BuildPool(chosen, beside, backend, settings) as build_pool, alone_on(backend, Waiting()):
            line = _Line(size, tell)
            device_run = DeviceRun(chosen, settings, backend, build_pool, line, progress, "")

            def entries(share_ends: float = share_ends) -> Iterator[tuple[Any, Any]]:
                to_come = [eager, *beside] * asked["controls"][position]
                for entry, following in zip(to_come, [*to_come[1:], None]):
                    if time.monotonic() > share_ends:
                        return
                    yield entry, following

            line.began = time.perf_counter()
            device_run.judge_each(entries())
        backend.release_memory()


class _Line:
    """Stands where a run has its files: each record becomes a figure."""

    def __init__(self, size: int, tell: Callable[[dict[str, Any]], None]) -> None:
        self._size, self._tell = size, tell
        self.began = 0.0

    def append(self, record: Any, samples: Any = None) -> None:
        ended = time.perf_counter()
        figure = {"method": OURS, "size": self._size, "name": record.candidate, "seconds": ended - self.began}
        self.began = ended
        if record.speedup is None:
            self._tell({**figure, "failed": f"{record.status.value}: {record.reason}"})
        else:
            self._tell({**figure, **_measured(record)})


def _measured(record: Any) -> dict[str, Any]:
    """What a figure takes from a record; the word is one that a candidate would have, since the control has none."""
    from harness.timing.stats import Interval, speedup_word

    interval = Interval(record.speedup, record.speedup_lo, record.speedup_hi)
    return {
        "ratio": record.speedup, "time_us": record.time_us, "lo": record.speedup_lo, "hi": record.speedup_hi,
        "call": speedup_word(interval, record.time_us), "sm_mhz": record.sm_mhz, "rounds": record.rounds, "status": record.status.value,
        "baseline_us": record.baseline_us, "baseline_inside_us": record.baseline_inside_us,
        "baseline_mean_us": record.baseline_mean_us, "baseline_processes": record.baseline_processes,
        **({"warnings": record.warnings} if record.warnings else {}),
    }


def peers(asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The other ways; which of them goes first is turned with each process."""
    import torch

    device = torch.device("cuda" if asked["device"] == "auto" and torch.cuda.is_available() else
                          "cpu" if asked["device"] == "auto" else asked["device"])
    methods = list(_methods(device).items())
    turn = asked["turn"] % len(methods)
    with torch.no_grad():
        for size in asked["sizes"]:
            a, b = (torch.tril(torch.rand(size, size, device=device)) for _ in range(2))

            def product(a: torch.Tensor = a, b: torch.Tensor = b) -> torch.Tensor:
                return torch.tril(torch.matmul(a, b))

            for name, time_us in methods[turn:] + methods[:turn]:
                began = time.perf_counter()
                first_us, second_us = time_us(product), time_us(product)
                yield {
                    "method": name, "size": size, "seconds": time.perf_counter() - began,
                    "ratio": second_us / first_us, "time_us": first_us,
                }


def _methods(device: Any) -> dict[str, Callable[[Callable[[], Any]], float]]:
    """How long a call takes, in µs, by each peer that works on `device`."""
    methods = {EVENTS: _mean_of_events if device.type == "cuda" else _mean_of_calls, AUTORANGE: _autorange}
    if device.type == "cuda":
        methods[DO_BENCH] = _do_bench
    return methods


def _mean_of_events(call: Callable[[], Any]) -> float:
    import torch

    for _ in range(3):
        call()
    torch.cuda.synchronize()
    flushed = torch.empty(_FLUSHED_BYTES, dtype=torch.uint8, device="cuda")
    times_ms = []
    for _ in range(_TRIALS):
        flushed.fill_(42)
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        times_ms.append(start.elapsed_time(stop))
    return 1e3 * statistics.fmean(times_ms)


def _mean_of_calls(call: Callable[[], Any]) -> float:
    import torch

    for _ in range(3):
        call()
    flushed = torch.empty(_FLUSHED_BYTES, dtype=torch.uint8)
    times_s = []
    for _ in range(_TRIALS):
        flushed.fill_(42)
        began = time.perf_counter()
        call()
        times_s.append(time.perf_counter() - began)
    return 1e6 * statistics.fmean(times_s)


def _do_bench(call: Callable[[], Any]) -> float:
    from triton.testing import do_bench

    return 1e3 * do_bench(call, return_mode="median")


def _autorange(call: Callable[[], Any]) -> float:
    from torch.utils.benchmark import Timer

    return 1e6 * Timer("call()", globals={"call": call}).blocked_autorange(min_run_time=_AUTORANGE_S).median


if __name__ == "__main__":
    main()
