"""How long candidates take to build: PyTorch's own headers one after another, against this software.

    python benchmarks/build_vs_stock.py [--count 10] [--stock 10 | --enough 10] [--no-cpp] [--runs 3] [--json FILE]

The candidates are the launchers of tests/fixtures/launchers, written as language models write them for KernelBench.
"stock" builds them with the stock headers and one after the other, as a script that calls load_inline in turn does;
"ours" gives them all to the build queue at once. Both start without a cache, with compilers that have been read from
the disk, and with the process running that builders are forked from; "again" has ours build the same a second time. A
candidate counts as built when its module is loaded or, where there is no GPU, when its CUDA is compiled and its C++ half
has been looked at, in both columns. --stock gives stock fewer candidates, and the table then has none for all. With
--enough stock is given up once it has taken so many times what ours took for all: what it would have taken is more.

Last comes what a user waits for: the whole command, with --config quick over ten CUDA candidates of
problems/tril_matmul.yaml beside its baselines, --runs times (3 where there is a GPU, else 0), the first with nothing
built: seconds for each candidate. What an import of PyTorch takes here, with which it begins, is told beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from whole_run import QUICK_RUN, Whole, import_seconds, told_by_step, whole_runs

from harness.build.cache import Cache
from harness.build.product import Build
from harness.build.queue import BuildQueue, builders_at_once
from harness.build.stand_in_headers import STOCK_VARIABLE
from harness.build.toolchain import Toolchain, arch_of, cuda_home, find_toolchain
from harness.model.candidate import Candidate, read_candidate
from harness.model.settings import load_settings
from harness.sandbox.sandbox_choice import strongest_sandbox

LAUNCHERS = REPOSITORY / "tests" / "fixtures" / "launchers"
USUAL = "matmul_checked"


def candidates(count: int, nvcc: str) -> tuple[list[Candidate], list[Candidate]]:
    """The first `count` CUDA launchers that both can build, the usual one first, and the C++ ones."""
    cpp = sorted(LAUNCHERS.glob("cpp_[!n]*.py"))
    cuda = [path for path in sorted(LAUNCHERS.glob("*.py")) if not path.stem.startswith(("cpp_", "needs_stock"))]
    includes = [Path(cuda_home(nvcc), place) for place in ("include", "targets/x86_64-linux/include")]
    if not any((place / "cusparse.h").is_file() for place in includes):
        # PyTorch's own ATen/cuda/CUDAContext.h needs the headers of cuSPARSE, cuBLAS and cuSOLVER.
        cuda = [path for path in cuda if "ATen/cuda/" not in path.read_text()]
    cuda.sort(key=lambda path: path.stem != USUAL)
    return [read_candidate(path) for path in cuda[:count]], [read_candidate(path) for path in cpp]


class Timer:
    """Builds candidates in one cache and says how long until the last of them was there."""

    def __init__(self, toolchain: Toolchain, folder: Path) -> None:
        self._toolchain, self._cache, self._sandbox = toolchain, Cache(folder), strongest_sandbox()
        self._settings = replace(load_settings("quick"), build_timeout_s=1800)

    def seconds(self, chosen: Sequence[Candidate]) -> tuple[float, list[Build]]:
        """All of `chosen` at once, in s, and their builds."""
        began = time.perf_counter()
        with BuildQueue(chosen, self._toolchain, self._cache, self._settings, self._sandbox) as queue:
            builds = [queue.result(each) for each in chosen]
            took = time.perf_counter() - began
        for candidate, build in zip(chosen, builds, strict=True):
            if build.verdict is not None and build.verdict.status.value != "compiled":
                sys.exit(f"{candidate.name}: {build.verdict.status.value}: {build.verdict.reason}")
        return took, builds

    def seconds_in_turn(self, chosen: Sequence[Candidate], enough_s: float = math.inf) -> tuple[float, int]:
        """One after the other, with PyTorch's own headers, in s, and how many: no further one from `enough_s` on."""
        os.environ[STOCK_VARIABLE] = "1"
        took, number = 0.0, 0
        try:
            while number < len(chosen) and took < enough_s:
                took += self.seconds([chosen[number]])[0]
                number += 1
            return took, number
        finally:
            del os.environ[STOCK_VARIABLE]


@dataclass
class Figures:
    """The rows of the table, each printed as it comes."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self, what: str, stock_s: float | None, ours_s: float, each: int = 1, given_up_after: int | None = None
    ) -> None:
        """A row: what stock took, in s, and what ours took for `each` candidates together; `given_up_after` is how many
        stock had built when it was given up.
        """
        row = {
            "what": what, "stock_s": stock_s, "ours_s": ours_s / each, "ratio": stock_s / ours_s if stock_s else None,
            "given_up_after": given_up_after,
        }
        self.rows.append(row)
        stock_text = told(row, "stock_s")
        print(f"{what}: {f'stock {stock_text} s, ' if stock_text else ''}ours {row['ours_s']:.3g} s", flush=True)

    def table(self) -> str:
        """All rows in Markdown."""
        cells = [[row["what"], *(told(row, key) for key in ("stock_s", "ours_s", "ratio"))] for row in self.rows]
        return tabulate(cells, ["", "stock, s", "ours, s", "ratio"], tablefmt="github", disable_numparse=True)


def main() -> None:
    """Measure, and print the table."""
    options = read_command_line()
    arch = device_arch()
    if options.runs and arch is None:
        sys.exit("--runs takes a GPU: without one a run compiles candidates and judges none; leave it out")
    toolchain = find_toolchain(arch)
    if toolchain.nvcc_path is None:
        sys.exit("there is no nvcc here")
    print(f"On {machine(toolchain, arch)}.\n", flush=True)
    figures, runs = Figures(), options.runs if options.runs is not None else 3 if arch else 0
    with tempfile.TemporaryDirectory(prefix="build-vs-stock-") as place:
        warm_up(toolchain, Path(place))
        usual, builds = time_builds(options, toolchain, Path(place), figures)
        ran = time_whole_runs(runs, Path(place, "whole"), figures)
    print("\n" + figures.table())
    print(f"\nBuilt with the stand-in for PyTorch's headers: {sum(each.headers == 'slim' for each in builds)} of "
          f"{len(builds)}; the usual one: {usual.headers}.")
    if ran is not None:
        print(f"\n{told_by_step(ran)}")
    if options.json:
        body = {"machine": machine(toolchain, arch), "figures": figures.rows, "steps": ran.steps if ran else {}}
        options.json.write_text(json.dumps(body, indent=1) + "\n")


def read_command_line() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10, help="CUDA candidates (default: 10)")
    fewer = parser.add_mutually_exclusive_group()
    fewer.add_argument("--stock", type=int, help="how many of them stock builds (default: all)")
    fewer.add_argument("--enough", type=float, metavar="TIMES", help="stock ends at so many times what ours took for all")
    parser.add_argument("--no-cpp", action="store_true", help="leave the C++ candidates out")
    parser.add_argument("--runs", type=int, metavar="N", help="runs of the whole command (default: 3 with a GPU, else 0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return parser.parse_args()


def warm_up(toolchain: Toolchain, folder: Path) -> None:
    """Read the compilers from the disk, and start the process that builders are forked from."""
    read_compilers(toolchain, folder)
    Timer(toolchain, folder / "first").seconds([plain(folder)])


def time_builds(
    options: argparse.Namespace, toolchain: Toolchain, folder: Path, figures: Figures
) -> tuple[Build, list[Build]]:
    """Build by both, each in a cache of its own below `folder`: the usual candidate, all CUDA ones, those in C++.

    Return our builds of the usual one and of all.
    """
    cuda, cpp = candidates(options.count, toolchain.nvcc_path)
    ours, one, stock = (Timer(toolchain, folder / name) for name in ("ours", "one", "stock"))
    one_s, (usual,) = one.seconds(cuda[:1])
    stock_one_s, _ = stock.seconds_in_turn(cuda[:1])
    figures.add("one usual candidate, cold", stock_one_s, one_s)
    figures.add("the same again", None, one.seconds(cuda[:1])[0])
    builds = time_all(options, cuda, ours, stock, stock_one_s, figures)
    if not options.no_cpp:
        cpp_s, _ = ours.seconds(cpp)
        figures.add(f"{len(cpp)} C++ candidates, cold, loaded", stock.seconds_in_turn(cpp)[0], cpp_s)
    return usual, builds


def time_all(
    options: argparse.Namespace, cuda: Sequence[Candidate], ours: Timer, stock: Timer, stock_one_s: float,
    figures: Figures,
) -> list[Build]:
    """Build all CUDA candidates by both, and by ours again; stock has built the first, in `stock_one_s`. Return our builds.
    """
    all_s, builds = ours.seconds(cuda)
    of_stock = cuda[: options.stock or len(cuda)]
    enough_s = math.inf if options.enough is None else options.enough * all_s
    rest_s, others = stock.seconds_in_turn(of_stock[1:], enough_s - stock_one_s)
    is_told = options.enough is not None or len(of_stock) == len(cuda)
    figures.add(
        f"{len(cuda)} usual candidates, cold", stock_one_s + rest_s if is_told else None, all_s,
        given_up_after=1 + others if is_told and 1 + others < len(cuda) else None,
    )
    figures.add("again, nothing changed, each", None, ours.seconds(cuda)[0], len(cuda))
    return builds


def time_whole_runs(runs: int, folder: Path, figures: Figures) -> Whole | None:
    """Run the whole command so often, and return the last; None where it is not run."""
    if runs:
        figures.add("import torch", None, import_seconds())
    ran = None
    for number, ran in enumerate(whole_runs(QUICK_RUN, runs, folder)):
        when = "again" if number else "cold"
        figures.add(f"the whole run over {ran.judged} candidates, {when}, each", None, ran.seconds, ran.judged)
    return ran


def told(figure: Mapping[str, Any], key: str) -> str:
    """A cell of the table: s of `stock_s` or `ours_s`, or their `ratio`."""
    if not figure[key]:
        return ""
    if figure["given_up_after"] is None or key == "ours_s":
        return f"{figure[key]:.3g}"
    number = f" ({figure['given_up_after']} built)" if key == "stock_s" else ""
    return f"more than {figure[key]:.3g}{number}"


def read_compilers(toolchain: Toolchain, folder: Path) -> None:
    """Compile an empty kernel, so that nobody pays for a disk that has not been read."""
    source = folder / "empty.cu"
    source.write_text("__global__ void nothing() {}\n")
    subprocess.run([toolchain.nvcc_path, "-c", source, "-o", folder / "empty.o"], check=True, capture_output=True)


def plain(folder: Path) -> Candidate:
    """A candidate with nothing to compile."""
    path = folder / "plain.py"
    path.write_text("import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n")
    return read_candidate(path)


def device_arch() -> str | None:
    """The architecture of the GPU that PyTorch would use; None where there is none."""
    import torch

    return arch_of(torch.cuda.get_device_capability()) if torch.cuda.is_available() else None


def machine(toolchain: Toolchain, arch: str | None) -> str:
    """The machine and its compilers in words."""
    import torch

    device = f"one {torch.cuda.get_device_name()}" if arch else "no GPU (CUDA compiled only)"
    cores = len(os.sched_getaffinity(0))
    return (
        f"{platform.machine()} with {cores} cores ({builders_at_once()} builders at once), {device}, "
        f"PyTorch {toolchain.torch}, nvcc {toolchain.nvcc_version}, {toolchain.cxx_text}, Python {toolchain.python}"
    )


if __name__ == "__main__":
    main()
