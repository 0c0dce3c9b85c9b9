"""How far the same pair lands from itself: this software beside what else is used, on one device in the same minutes.

    python benchmarks/timing_vs_peers.py [--device auto] [--processes 8] [--minutes 10] [--sizes 4096 …] [--json FILE]

Each pair is one function against itself, so its ratio is 1: eager tril(A @ B) at sizes that take from milliseconds to
microseconds. In each process every peer times the function twice; ours, in a process of its own, times eager in a
player against eager in the referee, as each run does for its control. Processes of both sorts take turns. A cell
holds the worst distance from 1 and largest over smallest less 1, in per cent, over the processes. What comes out is
printed whatever it is: the first run of it, and not the best of several.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from timing_peers import AUTORANGE, DO_BENCH, EVENTS, OURS  # noqa: E402

from harness.report import terminal  # noqa: E402
from harness.statistics import Interval  # noqa: E402
from harness.statistics.scatter import Scatter, held  # noqa: E402

GPU_SIZES, CPU_SIZES = (4096, 2048, 768, 256), (1024, 256)


class Timed:
    """A process of timing_peers.py; it has imported PyTorch and waits for its turn."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._said = tempfile.TemporaryFile(mode="w+", encoding="utf-8")
        command = [sys.executable, str(REPOSITORY / "benchmarks" / "timing_peers.py"), kind]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True, cwd=REPOSITORY,
            start_new_session=True,  # an interrupt is this process's, which ends them
        )

    def ask(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The figures of this process as they come; exits with its last words where it died."""
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        self._process.stdout.readline()  # its hello
        for line in self._process.stdout:
            yield json.loads(line)
        if self._process.wait():
            self._said.seek(0)
            sys.exit(f"a process died: {(self._said.read().strip().splitlines() or ['it said nothing'])[-1]}")

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def interrupt_once() -> None:
    """Have the first SIGINT or SIGTERM raise KeyboardInterrupt, and no later one: `timeout` sends two."""

    def end(number: int, frame: object) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)


def measure(asked: dict[str, Any], processes: int, minutes: float) -> list[dict[str, Any]]:
    """Figures of up to `processes` processes of each sort; none is begun when `minutes` have passed.

    An interrupt ends it with the figures that there are.
    """
    deadline, figures = time.monotonic() + 60 * minutes, []
    kinds = [kind for _ in range(processes) for kind in ("ours", "peers")]
    waiting: list[Timed] = []
    interrupt_once()
    try:
        for number, _ in enumerate(kinds):
            if number % 2 == 0 and number and time.monotonic() > deadline:
                break
            # The next one imports PyTorch meanwhile, but not on a CPU, whose cores are being timed.
            for kind in kinds[number + len(waiting) : number + (1 if asked["is_cpu"] else 2)]:
                waiting.append(Timed(kind))
            now = waiting[0]
            for figure in now.ask({**asked, "turn": number // 2}):
                figures.append({**figure, "process": number // 2})
                print(f"{now.kind} {number // 2 + 1} of {processes}: {_told(figure)}", file=sys.stderr, flush=True)
            waiting.pop(0).end()
    except KeyboardInterrupt:
        print("interrupted: this is what there is", file=sys.stderr)
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", metavar="auto|cuda:0|cpu", help="where to run (default: auto)")
    parser.add_argument("--processes", type=int, help="of each sort (default: 8; 3 on a CPU)")
    parser.add_argument("--minutes", type=float, help="begin no process after so long (default: 10; 2 on a CPU)")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="M", help="sizes of the product")
    parser.add_argument("--config", help="how long ours measures (default: default; quick on a CPU)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    import torch

    is_cpu = options.device == "cpu" or not torch.cuda.is_available()
    sizes = options.sizes or (CPU_SIZES if is_cpu else GPU_SIZES)
    processes, minutes = options.processes or (3 if is_cpu else 8), options.minutes or (2.0 if is_cpu else 10.0)
    config = options.config or ("quick" if is_cpu else "default")
    asked = {"sizes": list(sizes), "device": options.device, "config": config, "is_cpu": is_cpu}
    where = "this CPU" if is_cpu else torch.cuda.get_device_name()
    print(f"On {where}, PyTorch {torch.__version__}; ours with --config {config}.\n", flush=True)
    figures = measure(asked, processes, minutes)
    if not figures:
        sys.exit("nothing was measured")
    if options.json:
        body = {"device": where, "torch": torch.__version__, "config": config, "figures": figures}
        options.json.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    methods = [name for name in (OURS, EVENTS, DO_BENCH, AUTORANGE) if any(each["method"] == name for each in figures)]
    rows, sentences = zip(*(row_of(figures, size, methods) for size in sizes))
    print(tabulate(rows, ["pair", *methods], tablefmt="github", disable_numparse=True))
    print("\nA cell: worst |ratio − 1|, largest over smallest less 1, over n processes.\n")
    heads = ["ours", "p95 distance from 1", "median interval", "called FASTER or SLOWER", "interval holds 1", "s a pair"]
    print(tabulate([own_row(figures, size) for size in sizes], heads, tablefmt="github", disable_numparse=True))
    print("\n" + "\n".join(sentences))


if __name__ == "__main__":
    main()
