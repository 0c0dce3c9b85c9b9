"""Problems of other projects, written for one test each: a definition with its workloads and solutions, and a task."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
RANDOM = {"type": "random"}


def _definition() -> dict[str, Any]:
    return {
        "name": "added_rows", "op_type": "elementwise",
        "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 64},
                 "twice": {"type": "expr", "expression": "2 * N"}},
        "inputs": {"a": {"shape": ["M", "N"], "dtype": "float32"}, "b": {"shape": ["N"], "dtype": "float32"},
                   "factor": {"shape": None, "dtype": "float32"}},
        "outputs": {"both": {"shape": ["M", "twice"], "dtype": "float32"}, "total": {"shape": ["M"], "dtype": "float32"}},
        "reference": "import torch\n\ndef run(a, b, factor):\n    both = torch.cat([a + b, a * factor], dim=1)\n"
                     "    return both, a.sum(dim=1)\n",
    }


def _workload(m: int, factor: float = 2.0) -> dict[str, Any]:
    return {"uuid": f"{m}-{factor}", "axes": {"M": m},
            "inputs": {"a": RANDOM, "b": RANDOM, "factor": {"type": "scalar", "value": factor}}}


@dataclass
class Traced:
    """A folder with a definition of two outputs, its workloads and solutions."""

    folder: Path
    values: dict[str, Any] = field(default_factory=_definition)
    workloads: list[Any] = field(default_factory=lambda: [_workload(3), _workload(40), _workload(17)])

    def write(self) -> Path:
        path = self.folder / "definition.json"
        path.write_text(json.dumps(self.values))
        lines = (each if isinstance(each, str) else json.dumps(each) for each in self.workloads)
        (self.folder / "workload.jsonl").write_text("".join(f"{line}\n" for line in lines))
        return path

    def solution(self, name: str, content: str | dict[str, str], **spec: Any) -> Path:
        """Write a solution in `kernel.py`, or in several files of which the first has the entry point."""
        files = {"kernel.py": content} if isinstance(content, str) else content
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({
            "name": name, "definition": self.values["name"], "author": "test",
            "spec": {"languages": ["pytorch"], "target_hardware": ["LOCAL"], "entry_point": f"{next(iter(files))}::run",
                     **spec},
            "sources": [{"path": each, "content": text} for each, text in files.items()],
        }))
        return path


TASK = """\
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
  - {"name": "eval.py", "source": "../eval.py"}
lang: "py"
description: |
  Doubles a matrix.
config:
  main: "eval.py"
tests:
  - {"size": 5, "seed": 1}
benchmarks:
  - {"size": 64, "seed": 2}
  - {"size": 16, "seed": 3}
"""
REFERENCE = """\
import torch
from task import input_t
from utils import seeded


def generate_input(size, seed):
    x = torch.randn(size, size, generator=seeded(seed))
    return x, torch.empty_like(x)


def ref_kernel(data: input_t):
    x, output = data
    output[...] = 2 * x
    return output
"""


@dataclass
class Task:
    """A task's folder, beside which the files that tasks share lie."""

    folder: Path
    yaml: str = TASK
    reference: str = REFERENCE

    def write(self) -> Path:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "task.yml").write_text(self.yaml)
        (self.folder / "reference.py").write_text(self.reference)
        (self.folder / "task.py").write_text("input_t = tuple\n")
        (self.folder.parent / "utils.py").write_text(
            "import torch\n\ndef seeded(seed):\n    return torch.Generator().manual_seed(seed)\n")
        return self.folder / "task.yml"

    def submission(self, name: str, text: str) -> Path:
        path = self.folder / f"{name}.py"
        path.write_text(text)
        return path


@dataclass
class Command:
    """The command line, with results and a cache in `folder`."""

    folder: Path

    def __call__(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Judge on the CPU, quickly and against eager alone."""
        return self.plain(
            *words, "--device", "cpu", "--config", "quick", "--baselines", "eager", "--out", self.folder / "results"
        )

    def plain(self, *words: object) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ, "NO_COLOR": "1", "CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(self.folder), "KERNEL_REFEREE_CACHE": str(self.folder / "cache"),
        }
        return subprocess.run(
            [sys.executable, "run.py", *map(str, words)], cwd=REPOSITORY, env=environment, text=True, capture_output=True,
            timeout=600,
        )

    def rows(self) -> dict[str, dict[str, str]]:
        """Return the rows of the newest results, by candidate."""
        path = max(self.folder.glob("results/*/*/*.csv"), key=lambda each: each.stat().st_mtime_ns)
        with path.open(newline="", encoding="utf-8") as file:
            return {row["candidate"]: row for row in csv.DictReader(file)}


@pytest.fixture
def traced(tmp_path) -> Traced:
    return Traced(tmp_path)


@pytest.fixture
def task(tmp_path) -> Task:
    return Task(tmp_path / "doubled")


@pytest.fixture
def command(tmp_path_factory) -> Command:
    return Command(tmp_path_factory.mktemp("command"))
