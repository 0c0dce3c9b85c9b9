"""Honest kernels, as people write them, through this harness: each sums in another way than eager does, and must be `ok`.

    python benchmarks/honest_kernels.py [--out honest.jsonl] [--only mse_loss softmax …] [--devices cuda:0 cuda:1 …]
                                       [--config quick] [--minutes 60] [--retry unsure …]

benchmarks/honest/ has a problem for each operator, and beside it a folder of kernels: losses as trees over blocks of
256 with atomics and as a thread a row, then norms, softmax, attention, pooling, convolutions, scans and products. On
a GPU the CUDA kernels are judged at the problems' sizes, each built while those before it are judged. On a CPU their
twins in PyTorch operations, which sum in the same order, are judged at the small sizes that each problem has for it.
With --out the same command goes on where the last one was stopped. The table has the largest error found and allowed,
and eager's own. The exit code is 0 when all are ok, 3 when one is not, 4 when the time was over before.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from judged_lines import Line, LineFile, key_of, read_lines  # noqa: E402
from kernelbench_sweep import EXIT_NOT_ALL, add_sweep_flags, devices_asked, interrupt_by_sigterm  # noqa: E402
from sweeping import Sweep, built_ahead  # noqa: E402
from timing_flags import carried_out  # noqa: E402
from warm_referee import Setup  # noqa: E402

from harness.model.candidate import read_candidate  # noqa: E402
from harness.model.errors import InputError  # noqa: E402
from harness.model.files.reference_source import with_sizes  # noqa: E402
from harness.model.settings import load_settings  # noqa: E402
from harness.runs.suite.children import identify  # noqa: E402

HONEST = REPOSITORY / "benchmarks" / "honest"
EXIT_NOT_OK = 3


@dataclass(frozen=True)
class HonestTask:
    """One problem with its kernels for the device at hand."""

    key: str
    path: Path
    candidates: tuple[str, ...]

    def prepared(self, folder: Path, is_cpu: bool) -> tuple[Path, dict[str, Path]]:
        """The problem's file, on a CPU one at its small sizes below `folder`, and the files of its kernels."""
        path = self.path
        if is_cpu:
            path = folder / self.path.name
            path.write_text(at_cpu_sizes(self.path.read_text(encoding="utf-8")), encoding="utf-8")
        return path, {name: self.path.with_suffix("") / f"{name}.py" for name in self.candidates}


def at_cpu_sizes(source: str) -> str:
    """The problem at the sizes of its `CPU_SIZES`."""
    sizes = next(
        ast.literal_eval(node.value) for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CPU_SIZES"
    )
    return ast.unparse(with_sizes(source, sizes))


def honest_tasks(is_cpu: bool, only: Sequence[str] = ()) -> list[HonestTask]:
    """Each problem with its kernels in CUDA, or on a CPU with their twins. Raises InputError for one that is not there."""
    names = [path.stem for path in sorted(HONEST.glob("*.py"))]
    for name in only:
        if name not in names:
            raise InputError(f"--only {name}: there is no such problem in benchmarks/honest", hint=f"There are {', '.join(names)}")
    tasks = []
    for name in (each for each in names if not only or each in only):
        kernels = sorted((HONEST / name).glob("*.py"))
        tasks.append(HonestTask(name, HONEST / f"{name}.py", tuple(
            path.stem for path in kernels if is_cpu == (read_candidate(path).language == "torch")
        )))
    return tasks


def table(lines: Sequence[Line]) -> str:
    """A row for each kernel: what became of it, its largest error and what was allowed, eager's, and the speedup."""
    rows = []
    for line in sorted(lines, key=lambda each: (each["problem"], each["candidate"])):
        worst = line.get("worst") or {}
        errors = [worst.get(name) for name in ("max_u", "allowed_max_u", "rms_u", "allowed_rms_u", "eager_max_u")]
        speedup = line.get("speedup")
        rows.append([
            line["problem"], line["candidate"], line["status"], *("" if each is None else f"{each:.3g}" for each in errors),
            "" if speedup is None else f"{speedup:.2f}", f"{line['seconds']:.1f}",
        ])
    heads = ["problem", "kernel", "status", "max, u", "allowed", "rms, u", "allowed", "eager max, u", "speedup", "seconds"]
    said = [f"{each['problem']} {each['candidate']}: {each['reason']}" for each in lines if each["status"] != "ok"]
    return "\n".join([tabulate(rows, heads, tablefmt="github", disable_numparse=True), *([""] if said else []), *said])


def main() -> None:
    """Judge what is left, and print the table of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_sweep_flags(parser, is_out_required=False)
    parser.add_argument("--only", nargs="+", default=[], metavar="PROBLEM", help="these problems alone")
    options = parser.parse_args()
    load_settings(options.config)
    devices = devices_asked(options)
    is_cpu = identify(devices[0]).kind == "cpu"
    tasks = honest_tasks(is_cpu, options.only)
    with tempfile.TemporaryDirectory(prefix="honest-kernels-") as folder:
        path = options.out or Path(folder) / "lines.jsonl"
        is_all = judge(tasks, devices, is_cpu, path, options)
        wanted = {(task.key, name) for task in tasks for name in task.candidates}
        lines = [line for line in read_lines([path]) if key_of(line)[:2] in wanted]
    print(table(lines))
    if any(line["status"] != "ok" for line in lines):
        sys.exit(EXIT_NOT_OK)
    sys.exit(0 if is_all else EXIT_NOT_ALL)


def judge(
    tasks: Sequence[HonestTask], devices: Sequence[str], is_cpu: bool, path: Path, options: argparse.Namespace
) -> bool:
    """Judge what has no line in the file at `path` yet; returns whether all has one then."""
    out = LineFile(path)
    done = {key_of(line)[:2] for line in read_lines([path]) if line["status"] not in options.retry}
    left = [
        HonestTask(task.key, task.path, tuple(name for name in task.candidates if (task.key, name) not in done))
        for task in tasks
    ]
    left = [task for task in left if task.candidates]
    print(f"{sum(len(task.candidates) for task in left)} kernels are left", file=sys.stderr)
    if not left:
        return True
    interrupt_by_sigterm()
    setup = Setup(options.config)
    with built_ahead(left, "cpu" if is_cpu else devices[0], setup):
        return Sweep(left, devices, setup, out, seconds=60 * options.minutes, each_s=60 * options.each_minutes).run()


if __name__ == "__main__":
    carried_out(main)
