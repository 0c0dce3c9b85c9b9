"""Relocatable device code: found in the flags, linked on the device's side, and compiled for what has no GPU."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.build.ninja_file import is_relocatable, linking_flags, with_device_linking
from harness.build.toolchain import cuda_home, find_toolchain
from harness.model.verdict import Status
from tests.build.conftest import needs_cxx, needs_nvcc

pytestmark = pytest.mark.processes

NVCC = find_toolchain(None).nvcc_path
# A script elsewhere may stand for it.
HOMES = [Path(cuda_home(NVCC)), Path("/usr/local/cuda")] if NVCC else [Path("/nowhere")]
HOME = next((home for home in HOMES if (home / "lib64" / "libcudart.so").exists()), HOMES[0])
RUNTIME = HOME / "lib64" / "libcudart.so"
CHILD_KERNEL = """
#include <cuda_runtime.h>
__global__ void child(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2.f; }
__global__ void parent(float* x, int n) { if (threadIdx.x == 0) child<<<1, 128>>>(x, n); }
extern "C" void launch(float* x, int n) { parent<<<1, 32>>>(x, n); }
"""
CANDIDATE = '''
import torch
from torch.utils.cpp_extension import load_inline
extension = load_inline(
    "children", "", cuda_sources=r"""{text}""", functions=[], no_implicit_headers=True, extra_cuda_cflags={flags},
    extra_ldflags=["-lcudadevrt"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
'''
# As `load_inline` has it written where PyTorch is built for CUDA, which a test on a CPU cannot call.
BUILD = """
import os, subprocess, sys
import torch.utils.cpp_extension as cpp_extension
from harness.build.extension_maker import ExtensionMaker
folder, home, linked, *flags = sys.argv[1:]
cpp_extension.CUDA_HOME = home
if linked == "linked":
    ExtensionMaker(folder, folder, nvcc=None, sms=[], without_gpu=True).install()
cpp_extension._write_ninja_file_to_build_library(
    path=os.path.join(folder, "build.ninja"), name="children", sources=[os.path.join(folder, "children.cu")],
    extra_cflags=[], extra_cuda_cflags=flags, extra_sycl_cflags=[],
    extra_ldflags=[f"-L{home}/lib64", "-lcudart"], extra_include_paths=[], with_cuda=True, with_sycl=False,
    is_standalone=False,
)
sys.exit(subprocess.run(["ninja", "-C", folder]).returncode)
"""


@pytest.mark.parametrize(("flags", "relocatable"), [
    ([], False), (["-O3", "-lineinfo"], False), (["-rdc=true"], True), (["--relocatable-device-code=true"], True),
    (["-rdc", "true"], True), (["-rdc", "false"], False), (["-dc"], True), (["--device-c"], True), (["-rdc=false"], False),
    (["-rdc=true", "-rdc=false"], False), (["-DX=-dc"], False),
])
def test_it_is_told_by_the_flags(flags, relocatable):
    assert is_relocatable(flags) == relocatable


def test_it_is_linked_for_the_architectures_that_it_was_compiled_for():
    compiled = ["-O3", "-gencode=arch=compute_90a,code=sm_90a", "-rdc=true", "-gencode", "arch=compute_80,code=sm_80"]
    assert linking_flags(compiled) == [
        "-dlink", "--compiler-options", "'-fPIC'", "-gencode=arch=compute_90a,code=sm_90a", "-gencode",
        "arch=compute_80,code=sm_80", "-lcudadevrt",
    ]


def test_what_is_not_relocatable_is_written_as_pytorch_writes_it():
    written = []

    def write(path, cuda_cflags, cuda_dlink_post_cflags, ldflags):
        written.append((cuda_cflags, cuda_dlink_post_cflags, ldflags))

    with_device_linking(write)("build.ninja", ["-O3"], None, ["-shared"])
    with_device_linking(write)("build.ninja", None, None, ["-shared"])
    assert written == [(["-O3"], None, ["-shared"]), (None, None, ["-shared"])]


def test_another_pytorch_whose_writer_takes_other_arguments_is_left_alone():
    written = []
    with_device_linking(lambda path, cuda_cflags: written.append(cuda_cflags))("build.ninja", ["-rdc=true"])
    assert written == [["-rdc=true"]]


@pytest.mark.slow
@needs_cxx
@needs_nvcc
@pytest.mark.skipif(not RUNTIME.exists(), reason="the CUDA toolkit has no runtime library beside its nvcc")
@pytest.mark.parametrize("flag", ["-rdc=true", "-dc"])
def test_a_library_with_child_kernels_loads(tmp_path, flag):
    (tmp_path / "children.cu").write_text(CHILD_KERNEL)
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "TORCH_CUDA_ARCH_LIST": "9.0a", "PATH": programs}
    command = [sys.executable, "-c", BUILD, str(tmp_path), str(HOME), "linked", flag]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    ctypes.CDLL(str(RUNTIME), ctypes.RTLD_GLOBAL)
    assert ctypes.CDLL(str(tmp_path / "children.so"), os.RTLD_NOW).launch


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("flags", [["-rdc=true"], ["-dc"]])
def test_without_a_gpu_such_a_candidate_is_compiled(build_pool, flags):
    text = CANDIDATE.replace("{text}", CHILD_KERNEL).replace("{flags}", repr(flags))
    (build,) = build_pool.build(build_pool.write("children", text))
    assert build.verdict.status is Status.COMPILED, build.verdict.reason
    assert {each.kernel for each in build.kernels} == {"parent", "child"}
