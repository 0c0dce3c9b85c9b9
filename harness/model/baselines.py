"""What candidates are compared with: the reference itself under eager, `torch.compile`, and eager with TF32.

Each baseline is a candidate file, judged by the same workers, so that its row means what the others' rows mean. The row
"eager" should have a speedup of one: how far it is from that is what other speedups can be trusted to.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from harness.model.files.reference_source import with_sizes
from harness.model.problem import Problem

_EAGER = """

ModelNew = Model
"""

_TF32 = """

import torch as _torch

_torch.backends.cuda.matmul.allow_tf32 = True
_torch.backends.cudnn.allow_tf32 = True
ModelNew = Model
"""

_COMPILED = """

import torch as _torch


class ModelNew(Model):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self._compiled = _torch.compile(super().forward)

    def forward(self, *arguments):
        return self._compiled(*arguments)
"""


@dataclass(frozen=True)
class Baseline:
    """A baseline's name, its file, the precision class it is judged in, whether it needs a GPU to mean anything, and
    the modules that take its process so long to import that they had better be there before its turn.
    """

    name: str
    ending: str
    precision_class: str | None
    gpu_only: bool = False
    imports: tuple[str, ...] = ()
    role: ClassVar[str] = "baseline"


BASELINES = {
    "eager": Baseline("eager", _EAGER, None),
    "torch.compile": Baseline("torch.compile", _COMPILED, None, imports=("harness.worker.compiler_warmup",)),
    "eager-tf32": Baseline("eager-tf32", _TF32, "tf32", gpu_only=True),
}


def baselines_for(problem: Problem, device_kind: str) -> list[Baseline]:
    """The baselines that the problem names and the device has a use for: eager first, last what is slow to start."""
    named = [BASELINES[name] for name in problem.baselines]
    usable = [baseline for baseline in named if device_kind == "cuda" or not baseline.gpu_only]
    return sorted(usable, key=lambda baseline: (baseline.name != "eager", len(baseline.imports)))


def write_baseline(baseline: Baseline, problem: Problem, sizes: Mapping[str, int], folder: Path) -> Path:
    """Write the baseline as a candidate: the reference's source at `sizes`, and what makes it this baseline."""
    path = folder / f"{baseline.name.replace('.', '_').replace('-', '_')}.py"
    source = ast.unparse(with_sizes(problem.reference_source, sizes))
    path.write_text(source + "\n" + baseline.ending, encoding="utf-8")
    return path


def compilation_notes(name: str, before: int, after: int) -> list[str]:
    """What is said of a baseline that had compiled so many graphs before its rounds, as it should, and after them."""
    if after > before:
        graphs = f"{after - before} more graph{'s' if after - before > 1 else ''}"
        return [f"torch.compile compiled {graphs} while it was timed: that is in its times"]
    if name == "torch.compile" and not after:
        return ["torch.compile compiled nothing: what was timed is eager"]
    return []
