"""Compiling without a GPU: several architectures, several files, and what was read for it."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from harness.build.queue import BuildQueue
from harness.build.toolchain import check_architectures, find_toolchain, parse_architectures
from harness.model.candidate import read_candidate
from harness.model.errors import InputError
from harness.model.verdict import ReasonCode, Status

pytest.importorskip("torch")
pytest.importorskip("setuptools")
from harness.build import dependencies

pytestmark = pytest.mark.processes

NVCC = find_toolchain(None).nvcc_path
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="there is no nvcc")

FILES = '''
from pathlib import Path

import torch
from torch.utils.cpp_extension import load

HERE = Path(__file__).parent
extension = load(name="tiles", sources=[str(HERE / "tiles.cu")]{more})


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.run(x)
'''
KERNEL = '''#include "tile.cuh"
__global__ void tile_kernel(float* out) { out[threadIdx.x] = scaled(threadIdx.x); }
'''
HEADER = "__device__ inline float scaled(int x) { return 2.0f * x; }\n"

INLINE = '''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
__global__ void kernel(float* out) {
  BODY
  out[threadIdx.x] = 1.0f;
}
"""
extension = load_inline("inline_cuda", "", CUDA, no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    pass
'''


def of_files(folder, more="", header=HEADER):
    folder.mkdir()
    (folder / "tiles.cu").write_text(KERNEL)
    (folder / "tile.cuh").write_text(header)
    (folder / "candidate.py").write_text(FILES.replace("{more}", more))
    return read_candidate(folder / "candidate.py")


def built(build_pool, candidate, *archs):
    with BuildQueue([candidate], find_toolchain(None, archs), build_pool.cache, build_pool.settings) as queue:
        return queue.result(candidate)


@needs_nvcc
def test_each_architecture_is_compiled_for_and_has_its_own_figures(build_pool):
    candidate = build_pool.write("plain", INLINE.replace("BODY", ""))
    build = built(build_pool, candidate, "8.0", "9.0a", "10.0")
    assert build.verdict.status is Status.COMPILED
    assert [kernel.arch for kernel in build.kernels] == ["sm_80", "sm_90a", "sm_100"]
    assert build.arch == "sm_80+sm_90a+sm_100"
    assert all(f"{sm}, " in build.verdict.reason for sm in ("sm_80", "sm_90a", "sm_100"))


@needs_nvcc
def test_an_architecture_that_lacks_what_is_used_is_named_and_the_others_count(build_pool):
    body = 'asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");'
    candidate = build_pool.write("hopper", INLINE.replace("BODY", body))
    build = built(build_pool, candidate, "8.0", "9.0a")
    assert build.verdict.status is Status.COMPILED
    assert "not for sm_80 (it uses setmaxnreg" in build.verdict.reason
    assert [kernel.arch for kernel in build.kernels] == ["sm_90a"]
    alone = built(build_pool, candidate, "8.0")
    assert (alone.verdict.status, alone.verdict.reason_code) == (Status.SKIPPED, ReasonCode.NEEDS_ARCH)


@needs_nvcc
def test_a_library_whose_headers_are_missing_is_named_with_what_brings_it(build_pool):
    candidate = build_pool.write("absent", INLINE.replace("__global__", "#include <cublas_no_such.h>\n__global__"))
    build = built(build_pool, candidate)
    assert build.verdict.status is Status.SKIPPED
    assert "pip install nvidia-cublas" in build.verdict.reason


@pytest.fixture
def watched(build_pool, tmp_path):
    """`watched(candidate, *archs)`: its build, where nvcc tells its arguments."""
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(f'#!/bin/sh\necho "called with $@"\nexec {NVCC} "$@"\n')
    nvcc.chmod(0o755)

    def build(candidate, *archs):
        toolchain = replace(find_toolchain(None, archs), nvcc_path=str(nvcc))
        with BuildQueue([candidate], toolchain, build_pool.cache, build_pool.settings) as queue:
            return queue.result(candidate)

    return build


WITH_TENSOR = INLINE.replace("__global__", "#include <torch/types.h>\n__global__").replace(
    "BODY", "float sum = 0.0fEND out[0] = sum;"
)


@needs_nvcc
def test_an_error_that_no_header_could_mend_is_told_without_compiling_all_of_pytorch(watched, build_pool):
    build = watched(build_pool.write("certain", WITH_TENSOR.replace("END", "\n")), "8.0", "9.0a")
    assert build.verdict.reason.startswith('certain.py:9: expected a ";"\n    9 |  out[0] = sum;\n')
    assert build.verdict.status is Status.BUILD_FAILED
    calls = [line for line in build.log.splitlines() if line.startswith("called with")]
    assert len(calls) == 2 and all("-headers " in call for call in calls)  # the folder of the stand-in


@needs_nvcc
def test_what_only_one_architecture_refuses_is_tried_with_pytorchs_own_headers(watched, build_pool):
    for_ampere = "\n#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900\n#error old\n#endif\n"
    build = watched(build_pool.write("new", WITH_TENSOR.replace("END", f";{for_ampere}")), "8.0", "9.0a")
    assert build.verdict.status is Status.COMPILED
    assert build.headers == "stock"
    assert "not for sm_80 (" in build.verdict.reason


@needs_nvcc
def test_files_beside_a_candidate_are_compiled_and_followed_when_they_move(build_pool, tmp_path):
    first = built(build_pool, of_files(tmp_path / "one"))
    assert first.verdict.status is Status.COMPILED, first.verdict.reason
    shutil.copytree(tmp_path / "one", tmp_path / "moved")
    (tmp_path / "moved" / "candidate.py").rename(tmp_path / "moved" / "renamed.py")
    assert built(build_pool, read_candidate(tmp_path / "moved" / "renamed.py")).cached
    (tmp_path / "moved" / "tile.cuh").write_text(HEADER.replace("2.0f", "3.0f"))
    assert not built(build_pool, read_candidate(tmp_path / "moved" / "renamed.py")).cached
    assert built(build_pool, read_candidate(tmp_path / "one" / "candidate.py")).cached


@needs_nvcc
def test_a_header_from_an_include_path_elsewhere_is_part_of_what_was_built(build_pool, tmp_path, monkeypatch):
    library = tmp_path / "library"
    library.mkdir()
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", str(library))  # what no variable names is not seen
    (library / "tile.cuh").write_text(HEADER)
    candidate = of_files(tmp_path / "one", f", extra_include_paths=[{str(library)!r}]")
    (tmp_path / "one" / "tile.cuh").unlink()
    assert built(build_pool, candidate).verdict.status is Status.COMPILED
    assert built(build_pool, candidate).cached
    (library / "tile.cuh").write_text(HEADER.replace("2.0f", "3.0f"))
    assert not built(build_pool, candidate).cached


def test_a_rule_of_a_makefile_names_the_files_that_were_read():
    rule = "a.o : main.cu \\\n    /opt/my\\ headers/tile.cuh \\\n  /usr/include/math.h \n"
    assert dependencies.files_of_rule(rule) == {"main.cu", "/opt/my headers/tile.cuh", "/usr/include/math.h"}


def test_what_belongs_to_the_toolchain_or_the_build_is_no_dependency(tmp_path):
    from torch.utils import cpp_extension

    mine = tmp_path / "mine.cuh"
    read = {
        str(mine), "/usr/include/math.h", f"{cpp_extension.include_paths()[0]}/ATen/ATen.h",
        str(tmp_path / "build" / "main.cpp"),
    }
    assert dependencies.local(read, tmp_path / "build", NVCC) == {str(mine)}


def test_headers_of_others_beside_a_script_that_stands_for_nvcc_are_dependencies(tmp_path):
    home = tmp_path / "local"
    (home / "bin").mkdir(parents=True)
    (home / "include" / "mylib").mkdir(parents=True)
    nvcc, mine = home / "bin" / "nvcc", home / "include" / "mylib" / "tile.cuh"
    assert dependencies.local({str(mine)}, tmp_path / "build", str(nvcc)) == {str(mine)}
    (home / "include" / "cuda_runtime.h").write_text("a whole toolkit")
    assert dependencies.local({str(mine)}, tmp_path / "build", str(nvcc)) == set()


@pytest.mark.parametrize(("text", "archs"), [
    ("80,90a,100", ("8.0", "9.0a", "10.0")), ("sm_89", ("8.9",)), ("9.0a 12.0", ("9.0a", "12.0")),
    ("100f,100f", ("10.0f",)),
])
def test_architectures_are_read_as_people_write_them(text, archs):
    assert parse_architectures(text) == archs


@pytest.mark.parametrize("text", ["hopper", "", "90b", "9"])
def test_what_is_no_architecture_is_refused(text):
    with pytest.raises(InputError, match="architecture"):
        parse_architectures(text)


@needs_nvcc
def test_an_architecture_that_nvcc_does_not_know_is_refused_with_those_it_does():
    check_architectures(["9.0a"], NVCC)
    with pytest.raises(InputError, match="does not compile for it") as refused:
        check_architectures(["2.0"], NVCC)
    assert "90" in refused.value.hint
