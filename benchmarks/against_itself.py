"""How this software's numbers keep their targets: eager against itself, many times over, for each class of durations.

    python benchmarks/against_itself.py [--processes 10] [--controls 20] [--minutes 40] [--sizes 4096 …] [--json FILE]

One control is eager in a fresh player against eager in the referee, judged as a run judges its rows. Each of several
referee processes times a number of them at each size. For each size the table has, beside its target: the 95th percentile
of the distance from 1; largest over smallest speedup less 1 over the processes (of the first control of each, of the
second, …: the median of these, and the largest); how many were called FASTER or SLOWER; how many intervals hold the mean of
all, and how many hold 1; and the seconds from record to record. What comes out is printed whatever it is, with its n.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from timing_vs_peers import CPU_SIZES, GPU_SIZES, Timed, interrupt_once  # noqa: E402

from harness.report import terminal  # noqa: E402
from harness.statistics import Interval  # noqa: E402
from harness.statistics.scatter import Scatter, held, long_run, seen_at_most, spreads  # noqa: E402

_LONGEST_S = 600.0  # one process, where --minutes leaves it so long


@dataclass(frozen=True)
class Target:
    """What is aimed at on an H200 for calls of at least `shortest_us`: shares, a count of 200, seconds."""

    shortest_us: float
    p95: float
    spread: float
    wrong_of_200: int
    seconds: float
    held: float = 0.93


TARGETS = (
    Target(1000.0, 0.0005, 0.001, 1, 3.0), Target(50.0, 0.001, 0.002, 1, 2.0), Target(0.0, 0.0025, 0.004, 2, 2.0),
)
HEADS = (
    "pair", "n", "p95 distance from 1", "largest / smallest − 1", "FASTER or SLOWER", "hold the mean of all", "hold 1",
    "median interval", "s a control",
)


def target_for(time_us: float) -> Target:
    """The targets of the class of durations that a call of `time_us` is in."""
    return next(each for each in TARGETS if time_us >= each.shortest_us)


def row_of(figures: list[dict[str, Any]], size: int, with_targets: bool) -> list[str]:
    """The cells of one size; a figure beside its target ends in "!" where it misses it."""
    of_size = [each for each in figures if each["size"] == size]
    good = [each for each in of_size if "ratio" in each]
    if not good:
        return [f"M={size}", "0", *[""] * 6, of_size[0]["failed"] if of_size else ""]
    time_us = statistics.median(each["time_us"] for each in good)
    target = target_for(time_us) if with_targets else None
    ratios = [each["ratio"] for each in good]
    scatter, mean = Scatter.of(ratios), long_run(ratios)
    numbers = sorted({each["process"] for each in good})
    among = spreads([[each["ratio"] for each in good if each["process"] == number] for number in numbers])
    wrong = sum(each["call"] in ("FASTER", "SLOWER") for each in good)
    intervals = [Interval(each["ratio"], each["lo"], each["hi"]) for each in good]
    half = statistics.median((each["hi"] - each["lo"]) / 2 for each in good)
    # The first of a process has its start before it.
    later = [each["seconds"] for each in good if not each["first"]] or [each["seconds"] for each in good]
    return [
        f"M={size}, {terminal.time_text(time_us)}", f"{len(good)} of {len(of_size)}",
        _beside(_percent(scatter.p95), target and _percent(target.p95), target and scatter.p95 > target.p95),
        _spread_cell(among, len(numbers), target), _wrong_cell(wrong, len(good), target),
        _held_cell(held(intervals, mean), len(good), target), _held_cell(held(intervals), len(good), target),
        f"±{_percent(half)}",
        _beside(f"{statistics.median(later):.1f}", target and f"{target.seconds:g}",
                target and statistics.median(later) > target.seconds),
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.3f} %"


def _beside(figure: str, target: str | None, missed: bool | None) -> str:
    return figure if target is None else f"{figure} ({target}){' !' if missed else ''}"


def _spread_cell(among: list[float], processes: int, target: Target | None) -> str:
    if not among:
        return ""
    typical = statistics.median(among)
    said = f"{_percent(typical)}, at most {_percent(max(among))}, {processes} processes"
    return _beside(said, target and _percent(target.spread), target and typical > target.spread)


def _wrong_cell(wrong: int, n: int, target: Target | None) -> str:
    """Against its target as a rate; too few tries for it say what they leave possible."""
    possible = f"{wrong} of {n}, so at most {100 * seen_at_most(wrong, n):.1f} %"
    return _beside(possible, target and f"{target.wrong_of_200} of 200", target and wrong > target.wrong_of_200 * n / 200)


def _held_cell(found: int, n: int, target: Target | None) -> str:
    return _beside(f"{found} of {n}", target and f"{100 * target.held:g} %", target and found < target.held * n)


def measure(asked: dict[str, Any], processes: int, minutes: float) -> list[dict[str, Any]]:
    """Figures of up to `processes` processes one after the other, and no control begun after `minutes`.

    Each gets its share of the time that is left. An interrupt ends it with the figures that there are.
    """
    deadline, figures = time.monotonic() + 60 * minutes, []
    waiting: list[Timed] = []
    interrupt_once()
    try:
        for number in range(processes):
            left_s = deadline - time.monotonic()
            if number and left_s <= 0:
                break
            ahead = 1 if asked["is_cpu"] or number + 1 == processes else 2
            waiting += [Timed("controls") for _ in range(ahead - len(waiting))]
            seen: set[int] = set()
            for figure in waiting[0].ask({**asked, "seconds": min(left_s / (processes - number), _LONGEST_S)}):
                figures.append({**figure, "process": number, "first": figure["size"] not in seen})
                seen.add(figure["size"])
                said = f"{figure['ratio']:.4f}" if "ratio" in figure else figure["failed"]
                print(f"process {number + 1} of {processes}: M={figure['size']}: {said}, {figure['seconds']:.1f} s",
                      file=sys.stderr, flush=True)
            waiting.pop(0).end()
    except KeyboardInterrupt:
        print("interrupted: this is what there is", file=sys.stderr)
    finally:
        for each in waiting:
            each.end()
    return figures


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", metavar="auto|cuda:0|cpu", help="where to run (default: auto)")
    parser.add_argument("--processes", type=int, help="referee processes (default: 10; 2 on a CPU)")
    parser.add_argument("--controls", type=int, help="in each process and size (default: 20; 2 on a CPU)")
    parser.add_argument("--minutes", type=float, help="begin no control after so long (default: 40; 2 on a CPU)")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="M", help="sizes of the product")
    parser.add_argument("--config", help="how long each is measured (default: default; quick on a CPU)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    import torch

    is_cpu = options.device == "cpu" or not torch.cuda.is_available()
    sizes = options.sizes or (CPU_SIZES if is_cpu else GPU_SIZES)
    processes, controls = options.processes or (2 if is_cpu else 10), options.controls or (2 if is_cpu else 20)
    minutes, config = options.minutes or (2.0 if is_cpu else 40.0), options.config or ("quick" if is_cpu else "default")
    asked = {
        "sizes": list(sizes), "device": options.device, "config": config, "is_cpu": is_cpu, "controls": controls,
    }
    where = "this CPU" if is_cpu else torch.cuda.get_device_name()
    print(f"On {where}, PyTorch {torch.__version__}, --config {config}: up to {processes} processes of {controls} "
          "controls at each size.\n", flush=True)
    figures = measure(asked, processes, minutes)
    if not figures:
        sys.exit("nothing was measured")
    if options.json:
        body = {"device": where, "torch": torch.__version__, "config": config, "figures": figures}
        options.json.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    rows = [row_of(figures, size, not is_cpu) for size in sizes]
    print(tabulate(rows, HEADS, tablefmt="github", disable_numparse=True))
    if not is_cpu:
        print("\nIn brackets the target on an H200, and ! where it is missed; the mean is the geometric one of all n.")


if __name__ == "__main__":
    main()
