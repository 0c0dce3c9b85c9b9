"""How soon the command line answers where nothing is to be judged, beside a Python that does nothing.

    python benchmarks/start_up.py [--runs 15]

The commands take turns, so that a busy moment of the machine falls on all of them.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parents[1]
RUN = (sys.executable, str(REPOSITORY / "run.py"))
_MISSPELT = "titel: A product\nreference: tril_matmul.py\n"


def commands(folder: Path) -> dict[str, tuple[Sequence[str], int]]:
    """What is timed, with the exit code that each must have; a file that one of them reads goes to `folder`."""
    misspelt = folder / "misspelt.yaml"
    misspelt.write_text(_MISSPELT, encoding="utf-8")
    return {
        "python -c pass": ((sys.executable, "-c", "pass"), 0),
        "run.py --help": ((*RUN, "--help"), 0),
        "run.py list": ((*RUN, "list"), 0),
        "a missing file": ((*RUN, "problems/missing.yaml"), 2),
        "a misspelt key": ((*RUN, str(misspelt)), 2),
    }


def seconds_of(command: Sequence[str], code: int) -> float:
    """Wall clock of one run. Exits with what the command said where its exit code is not `code`."""
    began = time.perf_counter()
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode != code:
        sys.exit(f"{' '.join(command)} ended with exit code {done.returncode}: {done.stderr.strip()}")
    return seconds


def main() -> None:
    """Run them in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15, metavar="N", help="so many runs of each (default: 15)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="start-up-") as place:
        timed = commands(Path(place))
        for command, code in timed.values():
            seconds_of(command, code)  # reads the files from the disk, and leaves bytecode
        took = [[seconds_of(*each) for each in timed.values()] for _ in range(options.runs)]
    rows = [(name, statistics.median(each), min(each)) for name, each in zip(timed, zip(*took))]
    print(tabulate(rows, ("command", "median, s", "least, s"), tablefmt="github", floatfmt=".3f"))


if __name__ == "__main__":
    main()
