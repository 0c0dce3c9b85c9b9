"""How far the same pair lands from itself: this software beside what else is used, on one device in the same minutes.

    python benchmarks/timing_vs_peers.py [--device auto] [--processes 8] [--minutes 10] [--sizes 4096 …] [--json FILE]

Each pair is one function against itself, so its ratio is 1: eager tril(A @ B) at sizes that take from milliseconds to
microseconds. In each process every peer times the function twice; ours, in a process of its own, times eager in a
worker against eager in the judge, as each run does for its control. Processes of both sorts take turns. A cell
holds the worst distance from 1 and largest over smallest less 1, in per cent, over the processes. What comes out is
printed whatever it is: the first run of it, and not the best of several.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from timing_flags import Asked, Usual, asked_by, carried_out, flags  # noqa: E402
from timing_peers import AUTORANGE, DO_BENCH, EVENTS, OURS  # noqa: E402
from timing_process import Died, Timed, interrupt_once  # noqa: E402

from harness.report import terminal  # noqa: E402
from harness.timing.stats import Interval  # noqa: E402
from harness.timing.stats.difference import Scatter, held  # noqa: E402

USUAL = Usual("of each sort", (8, 3), (10.0, 2.0), ((4096, 2048, 768, 256), (1024, 256)))


def measure(asked: Asked) -> list[dict[str, Any]]:
    """Figures of up to `processes` processes of each sort; none is begun when `minutes` have passed.

    An interrupt, or a process that dies, ends it with the figures that there are.
    """
    deadline, figures, processes = time.monotonic() + 60 * asked.minutes, [], asked.processes
    kinds = [kind for _ in range(processes) for kind in ("ours", "peers")]
    waiting: list[Timed] = []
    interrupt_once()
    try:
        for number, _ in enumerate(kinds):
            if number % 2 == 0 and number and time.monotonic() > deadline:
                break
            # The next one imports PyTorch meanwhile, but not on a CPU, whose cores are being timed.
            for kind in kinds[number + len(waiting) : number + (1 if asked.is_cpu else 2)]:
                waiting.append(Timed(kind))
            now = waiting[0]
            for figure in now.ask({**asked.for_process(asked.devices[0]), "turn": number // 2}):
                figures.append({**figure, "process": number // 2})
                asked.write(figures)
                print(f"{now.kind} {number // 2 + 1} of {processes}: {_told(figure)}", file=sys.stderr, flush=True)
            waiting.pop(0).end()
    except KeyboardInterrupt:
        print("interrupted: this is what there is", file=sys.stderr)
    except Died as died:
        print(f"a process died, and this is what there is: {died}", file=sys.stderr)
    finally:
        for each in waiting:
            each.end()
    return figures


def _told(figure: dict[str, Any]) -> str:
    """One figure as it comes."""
    ratio = f"{figure['ratio']:.4f}" if "ratio" in figure else figure["failed"]
    return f"{figure['method']}, M={figure['size']}: {ratio}, {figure['seconds']:.1f} s"


def row_of(figures: list[dict[str, Any]], size: int, methods: list[str]) -> tuple[list[str], str]:
    """The cells of one size, and a sentence on who scattered least."""
    of_size = [each for each in figures if each["size"] == size and "ratio" in each]
    found = {
        method: Scatter.of([each["ratio"] for each in of_size if each["method"] == method])
        for method in methods if any(each["method"] == method for each in of_size)
    }
    cells = [
        f"{100 * found[name].worst:.2f} %, {100 * found[name].spread:.2f} % (n={found[name].n})" if name in found
        else "" for name in methods
    ]
    times_us = [each["time_us"] for each in of_size if each["method"] == OURS] or [each["time_us"] for each in of_size]
    label = f"M={size}, {terminal.time_text(sorted(times_us)[len(times_us) // 2])}" if times_us else f"M={size}"
    return [label, *cells], _who_is_least(label, found)


def _who_is_least(label: str, found: dict[str, Scatter]) -> str:
    if OURS not in found:
        return f"{label}: ours gave no figure."
    better = [
        f"{name} has the smaller {what}"
        for name in found for what, figure in (("worst distance", "worst"), ("spread", "spread"))
        if name != OURS and getattr(found[name], figure) < getattr(found[OURS], figure)
    ]
    said = "ours are the smallest" if not better else f"ours are not the smallest: {', '.join(better)}"
    return f"{label}: {said}."


def own_row(figures: list[dict[str, Any]], size: int) -> list[str]:
    """What ours said of itself at one size: distances, words, coverage, time."""
    own = [each for each in figures if each["method"] == OURS and each["size"] == size]
    good = [each for each in own if "ratio" in each]
    if not good:
        return [f"M={size}", "", "", "", "", own[0]["failed"] if own else ""]
    scatter = Scatter.of([each["ratio"] for each in good])
    wrong = sum(each["call"] in ("FASTER", "SLOWER") for each in good)
    covered = held([Interval(each["ratio"], each["lo"], each["hi"]) for each in good])
    half = sorted((each["hi"] - each["lo"]) / 2 for each in good)[len(good) // 2]
    seconds = sorted(each["seconds"] for each in good)[len(good) // 2]
    return [
        f"M={size}", f"{100 * scatter.p95:.3f} %", f"±{100 * half:.3f} %", f"{wrong} of {len(good)}",
        f"{covered} of {len(good)}", f"{seconds:.1f}",
    ]


def main() -> None:
    """Measure, and print the tables."""
    asked = asked_by(flags(__doc__, USUAL).parse_args(), USUAL)
    print(f"On {asked.device}, PyTorch {asked.torch}; ours with --config {asked.config}.\n", flush=True)
    figures = measure(asked)
    if not figures:
        sys.exit("nothing was measured")
    sizes = asked.sizes
    methods = [name for name in (OURS, EVENTS, DO_BENCH, AUTORANGE) if any(each["method"] == name for each in figures)]
    rows, sentences = zip(*(row_of(figures, size, methods) for size in sizes))
    print(tabulate(rows, ["pair", *methods], tablefmt="github", disable_numparse=True))
    print("\nA cell: worst |ratio − 1|, largest over smallest less 1, over n processes.\n")
    heads = ["ours", "p95 distance from 1", "median interval", "FASTER or SLOWER", "interval holds 1", "s a pair"]
    print(tabulate([own_row(figures, size) for size in sizes], heads, tablefmt="github", disable_numparse=True))
    print("\n" + "\n".join(sentences))


if __name__ == "__main__":
    carried_out(main)
