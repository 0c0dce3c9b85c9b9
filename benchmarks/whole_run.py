"""What a user waits for: the whole command over ten CUDA candidates, with nothing built and again.

    python benchmarks/whole_run.py [--runs 4]

The command is `python run.py problems/tril_matmul.yaml --config quick` beside its baselines; the first run has an empty
cache. It begins with an import of PyTorch, whose seconds on this machine are told too, and ends with where the seconds
of the last run went, from one line of progress to the next. It takes a GPU.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parents[1]
# The slowest three of the problem's candidates would show how long they take, some are not built by nvcc, and the newest
# rung came after the figures of docs/design/builds.md.
_LEFT_OUT = ("naive_per_element", "indexed_1d", "warp_reduction", "triton*", "openmp_cpu", "cublas_blocks", "wgmma_in_a_row")
_IMPORTS = 3
_PROGRESS = re.compile(r"\d\d:\d\d:\d\d\.\d (?P<text>.+)")
_STEPS = ("loading", "checking", "timing", "tracing kernels")
QUICK_RUN = (
    sys.executable, str(REPOSITORY / "run.py"), "problems/tril_matmul.yaml", "--config", "quick",
    *(word for name in _LEFT_OUT for word in ("--skip", name)),
)


@dataclass(frozen=True)
class Whole:
    """One run: its seconds by wall clock, how many candidates it judged, and where the seconds went, by step."""

    seconds: float
    judged: int
    steps: Mapping[str, Sequence[float]]


def whole_runs(command: Sequence[str], runs: int, folder: Path) -> Iterator[Whole]:
    """`runs` runs of `command`, each as it ends; the first has an empty cache.

    Cache and results go to `folder`. Exits with what the command said where it fails, where a candidate is not ok, or where
    others were judged than before.
    """
    environment = {**os.environ, "KERNEL_REFEREE_CACHE": str(folder / "cache")}
    names: list[str] = []
    for _ in range(runs):
        results = folder / "results"
        before = set(results.rglob("*.csv"))
        seconds, said, code = _timed([*command, "--out", str(results)], environment)
        if code:
            told = "\n".join(text for _, text in said).strip() or "it said nothing"
            sys.exit(f"{' '.join(command)} ended with exit code {code}: {told}")
        written, *others = set(results.rglob("*.csv")) - before or {None}
        if written is None or others:
            sys.exit(f"{' '.join(command)} left {len(others) + (written is not None)} files of results where one was expected")
        with written.open(newline="", encoding="utf-8") as file:
            records = [each for each in csv.DictReader(file) if each["role"] == "candidate"]
        for each in records:
            if each["status"] != "ok":
                sys.exit(f"{each['candidate']}: {each['status']}: {each['reason']}")
        judged = [each["candidate"] for each in records]
        if names and sorted(judged) != sorted(names):
            sys.exit(f"{' '.join(command)} judged {', '.join(judged)} after {', '.join(names)}")
        names = judged
        yield Whole(seconds, len(names), steps_of(said, seconds))


def _timed(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, list[tuple[float, str]], int]:
    """Seconds of the command, what it said on stderr with the second of each line, and its exit code."""
    said: list[tuple[float, str]] = []
    began = time.perf_counter()
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            said.append((time.perf_counter() - began, line.rstrip("\n")))
        code = process.wait()
    return time.perf_counter() - began, said, code


def steps_of(said: Iterable[tuple[float, str]], seconds: float) -> dict[str, list[float]]:
    """What a run took from each line of progress to the next, by the step that the line names.

    From its start to the first line is "start", from the last one to the end "end"; a line that names no step of a
    entry's is its own ("opening the device"), and one with a verdict "next".
    """
    steps: dict[str, list[float]] = {}
    since, step = 0.0, "start"
    for at_s, line in said:
        found = _PROGRESS.match(line)
        if found is not None:
            steps.setdefault(step, []).append(at_s - since)
            text = found["text"]
            _, named, rest = text.partition(": ")
            since, step = at_s, (rest if rest in _STEPS else "next" if named else text)
    steps.setdefault("end" if since else step, []).append(seconds - since)
    return steps


def told_by_step(ran: Whole) -> str:
    """A table of the steps of a run."""
    rows = [(step, len(took), sum(took), statistics.median(took)) for step, took in ran.steps.items()]
    table = tabulate(rows, ("step", "times", "s in all", "median, s"), tablefmt="github", floatfmt=".2f")
    return f"The last whole run, step by step:\n\n{table}"


def import_seconds() -> float:
    """What one import of PyTorch takes in a process of its own, the median of three after a first one."""
    code = "import time; began = time.perf_counter(); import torch; print(time.perf_counter() - began)"
    ran = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(1 + _IMPORTS)
    ]
    return statistics.median(float(each.stdout) for each in ran[1:])


def main() -> None:
    """Run the command, and print what each run took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4, metavar="N", help="so many runs (default: 4)")
    options = parser.parse_args()
    print(f"import torch: {import_seconds():.2f} s", flush=True)
    ran = None
    with tempfile.TemporaryDirectory(prefix="whole-run-") as place:
        for number, ran in enumerate(whole_runs(QUICK_RUN, options.runs, Path(place))):
            when = "again" if number else "nothing built"
            each_s = ran.seconds / ran.judged
            print(f"{when}: {ran.seconds:.1f} s, {each_s:.2f} s for each of {ran.judged} candidates", flush=True)
    if ran is not None:
        print(f"\n{told_by_step(ran)}")


if __name__ == "__main__":
    main()
