"""The rungs of the ladder, compiled for every architecture that they are meant for; no GPU is needed.

Those that do without Hopper's instructions go through the compiler's front once, together and each in a namespace of
its own: what they include takes longer to read than they do, and the assembler has to be asked for each architecture.
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.build import stand_in_headers
from harness.build.compiler_report import kernel_reports
from harness.build.diagnostics import diagnostics
from harness.build.extension_maker import texts_of_halves
from harness.build.queue import BuildQueue
from harness.build.toolchain import find_toolchain
from harness.model.candidate import read_candidate
from harness.model.verdict import ReasonCode, Status

torch = pytest.importorskip("torch")
pytest.importorskip("setuptools")
from torch.utils import cpp_extension

from harness.build import compile_only

NVCC = find_toolchain(None).nvcc_path
pytestmark = [pytest.mark.slow, pytest.mark.skipif(NVCC is None, reason="there is no nvcc")]

CANDIDATES = Path(__file__).resolve().parents[2] / "candidates"
CUDA = [path for path in sorted(CANDIDATES.glob("*/*.py")) if "cuda_sources=" in path.read_text()]
HOPPER = [path for path in CUDA if "wgmma" in path.stem]
OTHERS = [path for path in CUDA if path not in HOPPER]
ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100")
TORCH_INCLUDE = Path(cpp_extension.include_paths()[0])
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)


def named(path):
    return f"{path.parent.name}/{path.stem}"


def call_of(path):
    """The arguments with which a rung calls `load_inline`."""
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpp_extension, "load_inline", lambda **arguments: calls.append(arguments))
        runpy.run_path(str(path))
    (arguments,) = calls
    return arguments


def macros_of(arguments):
    """Lines that define what the call's flags define, and lines that take it back."""
    flags = [flag[2:].partition("=") for flag in arguments.get("extra_cuda_cflags", ()) if flag.startswith("-D")]
    return "".join(f"#define {name} {value}\n" for name, _, value in flags), "".join(
        f"#undef {name}\n" for name, _, _ in flags
    )


def namespace_of(path):
    return named(path).replace("/", "__")


def together(paths):
    """One source of all these rungs: what they include, then each in a namespace, on the lines that it has itself."""
    included, bodies = {"#include <torch/types.h>": None, "#include <cuda_runtime.h>": None}, []
    for path in paths:
        arguments = call_of(path)
        (source,) = compile_only.cuda_files("load_inline", arguments)
        define, undefine = macros_of(arguments)
        included |= dict.fromkeys(INCLUDE.findall(source))
        bodies.append(
            f'{define}namespace {namespace_of(path)} {{\n#line 1 "{named(path)}.cu"\n{INCLUDE.sub("", source)}\n}}\n'
            f"{undefine}"
        )
    return "\n".join([*included, *bodies])


def compiled(source, folder):
    """What nvcc says of `source`, for all the architectures."""
    folder.mkdir()
    assert stand_in_headers.write(folder / "slim", TORCH_INCLUDE, [], [source])
    (folder / "rungs.cu").write_text(source)
    stand_in = folder / "stand_in" / compile_only.STAND_IN
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text("#pragma once\n")
    standard = "-std=c++20" if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 12) else "-std=c++17"
    includes = [folder / "slim", folder / "stand_in", *cpp_extension.include_paths()]
    command = [
        NVCC, "-fatbin", f"-gencode=arch=compute_80,code=[{','.join(ARCHITECTURES)}]", standard, "-Xptxas=-v",
        *cpp_extension.COMMON_NVCC_FLAGS, *(f"-I{place}" for place in includes), "-o", "rungs.fatbin", "rungs.cu",
    ]
    ran = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    shutil.rmtree(folder)
    return ran.stdout


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Of each rung, what nvcc said of the group that it was compiled with."""
    folder = tmp_path_factory.mktemp("rungs")
    count = min(4, len(os.sched_getaffinity(0)))
    groups = [OTHERS[first::count] for first in range(count)]
    with ThreadPoolExecutor(count) as pool:
        said = pool.map(compiled, map(together, groups), [folder / str(number) for number in range(count)])
        return {path: log for group, log in zip(groups, said) for path in group}


@pytest.mark.parametrize("path", OTHERS, ids=named)
def test_a_rung_compiles_for_each_architecture_from_ampere_to_blackwell(path, logs):
    log = logs[path]
    assert not [each for each in diagnostics(log) if each.kind == "error"], log[-2000:]
    kernels = [each for each in kernel_reports(log) if each.kernel.startswith(f"{namespace_of(path)}::")]
    assert {each.arch for each in kernels} == set(ARCHITECTURES)


@pytest.mark.parametrize("path", HOPPER, ids=named)
def test_a_rung_for_hopper_compiles_for_it(path, tmp_path):
    arguments, slim = call_of(path), tmp_path / "slim"
    assert stand_in_headers.write(slim, TORCH_INCLUDE, *texts_of_halves("load_inline", arguments))
    arguments["extra_include_paths"] = [str(slim), *(arguments.get("extra_include_paths") or [])]
    went = compile_only.compile_cuda("load_inline", arguments, tmp_path, NVCC, ("sm_90a",))
    assert went.passed == ("sm_90a",), went.log[-2000:]


def test_where_there_is_no_hopper_such_a_rung_is_skipped(build_pool):
    candidate = read_candidate(CANDIDATES / "tril_matmul" / "wgmma_persistent.py")
    with BuildQueue([candidate], find_toolchain(None, ("8.0",)), build_pool.cache, build_pool.settings) as queue:
        build = queue.result(candidate)
    verdict = build.verdict
    assert build.headers == "slim"  # no other headers could mend it, and none were tried
    assert (verdict.status, verdict.reason_code) == (Status.SKIPPED, ReasonCode.NEEDS_ARCH), verdict
    assert verdict.reason.startswith("needs sm_90a: it uses ")
