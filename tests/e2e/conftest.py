"""The real command line, run in a subprocess on small problems, with its own cache and its own temporary folder."""

from __future__ import annotations

import ast
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

# What the judge says when another load on the machine, and not the candidate, may have moved a clock.
DOUBTED = "unsure/noisy"
_FURTHER_RUNS = 2

SETTINGS = """
half_width: 0.005
budget_s: 0.3
looks: [5, 10]
players: 1
segment_ms: 1
warmup_s: 0.05
check_launches: 2
load_timeout_s: {load_timeout_s}
launch_timeout_s: 3
build_timeout_s: {build_timeout_s}
confidence: 0.99
"""

TRIL = """
title: Lower triangular product
reference: tril_small.py
dtype: float32
sizes:
  timed: {M: %(gpu)d}
  check: [{M: 1}, {M: 31}, {M: 100}, {M: 257}]
  cpu: {M: %(cpu)d}
useful: {flops: "2*M*(M+1)*(M+2)/6", bytes: "4*(M*(M+1) + M*M)"}
accuracy: {class: fp32, scale: abs_inputs, terms: M, contracted: [1, 0]}
baselines: [eager]
kinds: [custom]
"""

TRANSPOSED = """
title: Product with A stored transposed, small and long
reference: transposed_small.py
dtype: float32
sizes:
  timed: {M: 256, K: 8192, N: 256}
  check: [{M: 1, K: 1, N: 1}, {M: 31, K: 33, N: 29}]
  cpu: {M: 64, K: 256, N: 64}
useful: {flops: "2*M*K*N", bytes: "4*(K*M + K*N + M*N)"}
accuracy: {class: fp32, scale: abs_inputs, terms: K, contracted: [0, 0]}
baselines: [eager]
kinds: [custom]
"""


@dataclass
class Ended:
    """How a command ended, what it printed, and the rows of the CSV that it wrote last."""

    code: int
    out: str
    err: str
    results: Path

    @property
    def csv_path(self) -> Path:
        return max(self.results.rglob("*.csv"))

    @property
    def rows(self) -> dict[str, dict[str, str]]:
        with self.csv_path.open(newline="", encoding="utf-8") as file:
            return {row["candidate"]: row for row in csv.DictReader(file)}


def _verdict(row: dict[str, str]) -> str:
    return f"{row['status']}/{row['reason_code']}"


def _is_disturbed(row: dict[str, str], *, by_kind: bool) -> bool:
    """Whether its clock was doubted, or nobody was found for what its profile shows: another load may stretch it.
    """
    return _verdict(row) == DOUBTED or (by_kind and row["status"] == "ok" and row["kind"] == "unknown")


@dataclass
class Bench:
    """A folder with problems, settings, candidates and results of its own, and the command line over it."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("temp", "results"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        # A temporary folder of its own is also a device lock of its own: benches do not wait for each other.
        self.environment = {
            **os.environ, "TMPDIR": str(self.temp), "NO_COLOR": "1",
            "KERNEL_REFEREE_CACHE": str(self.folder.parent / "cache"),
        }
        for name, text in (
            ("tril_small", TRIL % {"gpu": 256, "cpu": 128}),
            # Long enough a call that a slower or a faster kind of work shows, and no longer.
            ("tril_middle", TRIL % {"gpu": 2048, "cpu": 512}),
            # Work that is hidden from a clock must be longer than the clock's own doubts.
            ("tril_full", TRIL % {"gpu": 2048, "cpu": 768}),
            ("transposed_small", TRANSPOSED),
        ):
            (self.folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        for name, reference in (("tril_small", "tril_matmul"), ("transposed_small", "matmul_transposed_a")):
            shutil.copy(REPOSITORY / "problems" / f"{reference}.py", self.folder / f"{name}.py")
        self.settings()

    @property
    def temp(self) -> Path:
        return self.folder / "temp"

    @property
    def cache(self) -> Path:
        """The cache of builds, which all benches share."""
        return Path(self.environment["KERNEL_REFEREE_CACHE"])

    def settings(self, *, load_timeout_s: float = 20, build_timeout_s: float = 300) -> Path:
        path = self.folder / "tiny.yaml"
        text = SETTINGS.format(load_timeout_s=load_timeout_s, build_timeout_s=build_timeout_s)
        path.write_text(text, encoding="utf-8")
        return path

    def candidates(self, paths: Iterable[Path], name: str = "candidates") -> Path:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        for path in paths:
            shutil.copy(path, folder)
        return folder

    def start(self, *words: object) -> subprocess.Popen:
        """Start `python run.py WORDS`; the results go to this folder unless WORDS say otherwise."""
        return subprocess.Popen(
            [sys.executable, "run.py", *map(str, words)], cwd=REPOSITORY, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            # A suite started in the background inherits SIGINT ignored, and would hand that on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def end(self, process: subprocess.Popen, timeout_s: float = 900) -> Ended:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            pytest.fail(f"the command did not end within {timeout_s} s; it said last:\n{err[-2000:]}")
        return Ended(process.returncode, out, err, self.folder / "results")

    def run(self, *words: object, timeout_s: float = 900) -> Ended:
        return self.end(self.start(*words), timeout_s)

    def judge(self, problem: Path | str, candidates: Path, device: str, *words: object) -> subprocess.Popen:
        """Start judging `candidates` with the tiny settings."""
        return self.start(
            problem, "--device", device, "--config", self.folder / "tiny.yaml", "--out", self.folder / "results",
            "--candidates", candidates, *words,
        )

    def judged_again(
        self, end: Ended, names: Iterable[str], *words: object, by_kind: bool = False,
        also: Callable[[dict[str, str]], bool] = lambda row: False,
    ) -> dict[str, dict[str, str]]:
        """The rows of `end`; those of `names` that a shared CPU disturbed are from a further run or two of these alone.

        `words` are what `judge` was given in the first. A kind that is unknown is a disturbance only `by_kind`, for
        those who are to look at it; `also` is whether a row shows too little for another reason.
        Baselines are in every run, beside some candidate.
        """
        rows = dict(end.rows)
        for further in range(_FURTHER_RUNS):
            disturbed = [name for name in names if _is_disturbed(rows[name], by_kind=by_kind) or also(rows[name])]
            if not disturbed:
                break
            candidates = [name for name, row in rows.items() if row["role"] == "candidate"]
            chosen = [name for name in disturbed if name in candidates] or candidates[:1]
            results = self.folder / f"results-again-{further}"
            only = [word for name in chosen for word in ("--only", name)]
            again = replace(self.end(self.judge(*words, *only, "--out", results)), results=results).rows
            rows |= {name: again[name] for name in disturbed}
        return rows

    def left_behind(self) -> list[str]:
        """Processes and temporary files that came of this folder's commands and are still there."""
        # The locks are shared by all runs, and torchinductor_USER is PyTorch's own cache.
        kept = ("kernel-referee-locks", "torchinductor_")
        found = [str(path) for path in self.temp.iterdir() if not path.name.startswith(kept)]
        needle = str(self.folder).encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if needle in (process / "environ").read_bytes() + (process / "cmdline").read_bytes():
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return found


@pytest.fixture(scope="session")
def new_bench(tmp_path_factory):
    """Makes a bench of its own for each caller; all share one cache of builds."""
    base = tmp_path_factory.mktemp("e2e")

    def make(name: str) -> Bench:
        return Bench(base / name)

    return make


@pytest.fixture(scope="session")
def gpu_bytes_in_use():
    """`gpu_bytes_in_use(at_most=…)`: memory in use on the first GPU, asked again for ten seconds while it is more.

    A process of its own asks, so that what the asking takes is the same each time.
    """
    program = "import torch; free, total = torch.cuda.mem_get_info(0); print(total - free)"

    def read(at_most: int | None = None) -> int:
        deadline = time.monotonic() + 10
        while True:
            asked = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
            if at_most is None or int(asked.stdout) <= at_most or time.monotonic() > deadline:
                return int(asked.stdout)

    return read


@pytest.fixture(scope="session")
def expected():
    """`expected(path)`: what the docstring of a fixture says that its row must be, "status/reason_code" each."""

    def read(path: Path) -> list[str]:
        text = path.read_text(encoding="utf-8")
        try:
            text = ast.get_docstring(ast.parse(text)) or ""
        except SyntaxError:
            pass
        line = re.search(r"^Expected: (.*)$", text, re.MULTILINE).group(1)
        return re.findall(r"[a-z_]+/[a-z_]*", line)

    return read
