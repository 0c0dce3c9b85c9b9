"""How many candidates a minute several GPUs of one machine judge, against one of them.

    python benchmarks/several_gpus.py [--gpus 1,2,4] [--count 48] [--for-one 24] [--config quick] [--ray] [--json FILE]
                                      [--log FOLDER]

The candidates are copies of honest ones of tests/adversarial under names of their own, for
problems/tril_matmul.yaml, all built before anything is timed. Every run is the command line's own: `run.py PROBLEM
--devices …`, with eager as the only baseline: the others are judged once, however many candidates there are. "whole" counts
from its start to its end, what it takes to start up included; "judging" from when the first candidate is begun to when the
last has its row. --for-one gives one GPU fewer candidates, since it needs as long for each. "each" is the median time from
one row of a GPU to its next: what thousands of candidates take, whatever they take to start up. With --ray each GPU is a
node of a Ray cluster on this machine, started before the clock is, and the command is `run.py PROBLEM --ray …`. --log
keeps what each run said, with the second of each line.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from harness.build.cache import Cache
from harness.device.identity import DeviceIdentity
from harness.judge.build_pool import queue_for, toolchain_for
from harness.model.candidate import find_candidates
from harness.model.problem import load_problem
from harness.model.settings import load_settings
from harness.model.verdict import Status
from harness.results.reader import read_records
from harness.sandbox.sandbox_choice import strongest_sandbox

PROBLEM = REPOSITORY / "problems" / "tril_matmul.yaml"
HONEST = REPOSITORY / "tests" / "adversarial" / "honest"
CASES = ("torch_masked", "several_launches_cuda", "reuses_buffer", "two_extensions_cuda")
# On several devices a line begins with the device's name, and on Ray with the node's.
_OF_A_CANDIDATE = re.compile(r"(.* )?c\d\d\d_\w+: ")
_ROW = re.compile(rf"(?P<device>.* )?c\d\d\d_\w+: (?:{'|'.join(status.value for status in Status)}):? ")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d\.\d ")  # when a line was said, which is not of the device's name
_NODE_CORES = 8
LOG = "said.txt"


@dataclass(frozen=True)
class Rate:
    """One run: seconds of the whole command, of the judging alone and from a row to the next, and what became of its
    candidates.
    """

    gpus: int
    candidates: int
    ok: int
    whole_s: float
    judging_s: float
    each_s: float

    @property
    def whole_per_minute(self) -> float:
        return 60 * self.candidates / self.whole_s

    @property
    def judging_per_minute(self) -> float:
        return 60 * self.candidates / self.judging_s

    @property
    def steady_per_minute(self) -> float:
        return 60 * self.gpus / self.each_s


def copies(folder: Path, count: int) -> Path:
    """A folder of `count` candidates, the cases in turn."""
    folder.mkdir()
    for number in range(count):
        name = CASES[number % len(CASES)]
        shutil.copy(HONEST / f"{name}.py", folder / f"c{number:03d}_{name}.py")
    return folder


def identity_of(device: str) -> DeviceIdentity:
    """What a device is, asked for in a process of its own, which lets go of the GPU."""
    code = (
        "import json, sys; from dataclasses import asdict; from harness.device.choice import open_backend; "
        "print(json.dumps(asdict(open_backend(sys.argv[1]).identity)))"
    )
    asked = subprocess.run([sys.executable, "-c", code, device], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return DeviceIdentity(**json.loads(asked.stdout))


def build(folder: Path, config: str) -> None:
    """Build every candidate in `folder` into the cache that the runs use."""
    problem, candidates = load_problem(PROBLEM), find_candidates(folder, [], [])
    device = identity_of("cuda:0")
    settings = load_settings(config)
    queue = queue_for(problem, candidates, toolchain_for(device.sm, ()), settings, device, Cache(), strongest_sandbox())
    try:
        for candidate in candidates:
            verdict = queue.result(candidate).verdict
            if verdict is not None:
                sys.exit(f"{candidate.name}: {verdict.status.value}: {verdict.reason}")
    finally:
        queue.close()


@contextmanager
def ray_nodes(gpus: int) -> Iterator[str]:
    """A Ray cluster of so many nodes on this machine, each with one GPU; yields its address."""
    from ray.cluster_utils import Cluster

    visible = list(filter(None, os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")))
    names = visible if len(visible) >= gpus else [str(index) for index in range(gpus)]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 0, "include_dashboard": False})
    try:
        for name in names[:gpus]:
            cluster.add_node(num_cpus=_NODE_CORES, num_gpus=1, env_vars={"CUDA_VISIBLE_DEVICES": name})
        yield cluster.address
    finally:
        for node in (*cluster.worker_nodes, cluster.head_node):  # at once: a node that may end gracefully takes half a minute
            cluster.remove_node(node, allow_graceful=False)


def measured(gpus: int, folder: Path, config: str, out: Path, on_ray: bool) -> Rate:
    """One run on the first `gpus` GPUs."""
    words = [sys.executable, "run.py", str(PROBLEM), "--candidates", str(folder), "--baselines", "eager"]
    words += ["--config", config, "--out", str(out)]
    if on_ray:
        with ray_nodes(gpus) as address:
            return timed_run(gpus, [*words, "--ray", address], out)
    devices = ",".join(f"cuda:{index}" for index in range(gpus))
    return timed_run(gpus, [*words, "--devices", devices], out)


def timed_run(gpus: int, words: Sequence[str], out: Path) -> Rate:
    """The command `words`, timed."""
    began, first, last, said, rows = time.perf_counter(), None, None, [], []
    run = subprocess.Popen(words, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in run.stderr:
        said.append(f"{time.perf_counter() - began:7.1f} {line}")
        if _OF_A_CANDIDATE.match(line):
            last = time.perf_counter() - began
            first = last if first is None else first
        if row := _ROW.match(_CLOCK.sub("", line, count=1)):
            rows.append((row["device"], time.perf_counter()))
    code, whole = run.wait(), time.perf_counter() - began
    out.mkdir(exist_ok=True)
    (out / LOG).write_text("".join(said), encoding="utf-8")
    if code or first is None:
        sys.exit(f"{' '.join(words)} ended with {code}:\n{''.join(said)[-2000:]}")
    [path] = out.rglob("*.csv")
    own = [record for record in read_records(path) if record.role == "candidate"]
    return Rate(gpus, len(own), sum(record.status.value == "ok" for record in own), whole, last - first, each_s(rows))


def each_s(rows: Sequence[tuple[str | None, float]]) -> float:
    """Return the median of the seconds from a row to the next of its device; `rows` are devices and times, in their order."""
    by_device: dict[str | None, list[float]] = defaultdict(list)
    for device, at_s in rows:
        by_device[device].append(at_s)
    return statistics.median(later - earlier for times in by_device.values() for earlier, later in pairwise(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", default="1,2,4", help="numbers of GPUs; all are compared with the first")
    parser.add_argument("--count", type=int, default=48, help="candidates")
    parser.add_argument("--for-one", type=int, help="candidates for one GPU (default: as many)")
    parser.add_argument("--config", default="quick")
    parser.add_argument("--ray", action="store_true", help="each GPU is a node of a Ray cluster on this machine")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--log", type=Path, metavar="FOLDER", help="keep what each run said")
    options = parser.parse_args()
    numbers = [int(each) for each in options.gpus.split(",")]
    rates: list[Rate] = []
    with tempfile.TemporaryDirectory(prefix="several-gpus-") as name:
        folder = Path(name)
        build(copies(folder / "all", options.count), options.config)
        for gpus in numbers:
            count = options.for_one if gpus == 1 and options.for_one else options.count
            chosen = copies(folder / f"for{gpus}", count)
            rates.append(measured(gpus, chosen, options.config, folder / f"results{gpus}", options.ray))
            print(_row(rates[-1], rates[0]), file=sys.stderr, flush=True)
            if options.log:
                options.log.mkdir(parents=True, exist_ok=True)
                shutil.copy(folder / f"results{gpus}" / LOG, options.log / f"{gpus}-gpus.txt")
    print(tabulate([_row(each, rates[0]) for each in rates], headers="keys", floatfmt=".2f"))
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in rates]), encoding="utf-8")


def _row(rate: Rate, one: Rate) -> dict[str, object]:
    return {
        "GPUs": rate.gpus, "candidates": rate.candidates, "ok": rate.ok, "whole (s)": round(rate.whole_s, 1),
        "judging (s)": round(rate.judging_s, 1), "a minute, whole": round(rate.whole_per_minute, 1),
        "×": round(rate.whole_per_minute / one.whole_per_minute, 2),
        "a minute, judging": round(rate.judging_per_minute, 1),
        "× judging": round(rate.judging_per_minute / one.judging_per_minute, 2),
        "each (s)": round(rate.each_s, 2), "× by each": round(rate.steady_per_minute / one.steady_per_minute, 2),
    }


if __name__ == "__main__":
    main()
