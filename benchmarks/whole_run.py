"""What a user waits for: the whole command over ten CUDA candidates, with nothing built and again.

    python benchmarks/whole_run.py [--runs 4]

The command is `python run.py problems/tril_matmul.yaml --config quick` beside its baselines; the first run has an empty
cache. It begins with an import of PyTorch, whose seconds on this machine are told too. It takes a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
# The slowest three of the problem's candidates would show how long they take, and the others are not built by nvcc.
_LEFT_OUT = ("naive_per_element", "indexed_1d", "warp_reduction", "triton*", "openmp_cpu", "cublas_blocks")
_IMPORTS = 3
QUICK_RUN = (
    sys.executable, str(REPOSITORY / "run.py"), "problems/tril_matmul.yaml", "--config", "quick",
    *(word for name in _LEFT_OUT for word in ("--skip", name)),
)


def seconds_of_runs(command: Sequence[str], runs: int, folder: Path) -> Iterator[tuple[float, int]]:
    """Of each of `runs` runs of `command`, as it ends: the seconds by wall clock, the first with an empty cache, and how
    many candidates it judged.

    Cache and results go to `folder`. Exits with what the command said where it fails, where a candidate is not ok, or where
    others were judged than before.
    """
    environment = {**os.environ, "KERNEL_REFEREE_CACHE": str(folder / "cache")}
    names: list[str] = []
    for _ in range(runs):
        began = time.perf_counter()
        ran = subprocess.run(
            [*command, "--json", "--out", str(folder / "results")], cwd=REPOSITORY, env=environment,
            capture_output=True, text=True, check=False,
        )
        seconds = time.perf_counter() - began
        if ran.returncode:
            said = ran.stderr.strip() or "it said nothing"
            sys.exit(f"{' '.join(command)} ended with exit code {ran.returncode}: {said}")
        records = [each for each in json.loads(ran.stdout)["records"] if each["role"] == "candidate"]
        for each in records:
            if each["status"] != "ok":
                sys.exit(f"{each['candidate']}: {each['status']}: {each['reason']}")
        judged = [each["candidate"] for each in records]
        if names and sorted(judged) != sorted(names):
            sys.exit(f"{' '.join(command)} judged {', '.join(judged)} after {', '.join(names)}")
        names = judged
        yield seconds, len(names)


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
    with tempfile.TemporaryDirectory(prefix="whole-run-") as place:
        for number, (seconds, judged) in enumerate(seconds_of_runs(QUICK_RUN, options.runs, Path(place))):
            when = "again" if number else "nothing built"
            print(f"{when}: {seconds:.1f} s, {seconds / judged:.2f} s for each of {judged} candidates", flush=True)


if __name__ == "__main__":
    main()
