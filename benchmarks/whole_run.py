"""What a user waits for: the whole command over ten CUDA candidates, with nothing built and again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
# The slowest three of the problem's candidates would show how long they take, and the others are not built by nvcc.
_LEFT_OUT = ("naive_per_element", "indexed_1d", "warp_reduction", "triton*", "openmp_cpu", "cublas_blocks")
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
