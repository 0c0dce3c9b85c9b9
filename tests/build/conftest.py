"""Candidates and toolchains for the tests of building, and one real build of each kind, made once."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.build.cache import Cache
from harness.build.device_answers import DeviceFacts
from harness.build.product import Build
from harness.build.queue import BuildQueue
from harness.build.toolchain import find_toolchain
from harness.model.candidate import Candidate, read_candidate
from harness.model.settings import Settings

SETTINGS = Settings(name="test", half_width=0.01, budget_s=1, players=1, warmup_s=0.1, check_launches=1)

CPP_CANDIDATE = '''
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
torch::Tensor doubled(const torch::Tensor& x) { return x * 2; }
"""
extension = load_inline("doubled_extension", SOURCE, functions="doubled", extra_cflags=["-O0"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.doubled(x)
'''

# Built with the stand-in for PyTorch's headers, which it names, and includes none of: they take a compiler seconds.
LIGHT_CANDIDATE = '''
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""  // torch::
#include <Python.h>
static double doubled(double x) { return x * 2; }
static PyObject* call(PyObject*, PyObject* x) { return PyFloat_FromDouble(doubled(PyFloat_AsDouble(x))); }
static PyMethodDef functions[] = {{"doubled", call, METH_O, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "light", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_light() { return PyModule_Create(&module); }
"""
extension = load_inline("light", SOURCE, extra_cflags=["-O0"], no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * extension.doubled(1.0)
'''

CUDA_CANDIDATE = '''
import torch
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <cuda_runtime.h>
__global__ void reversed_kernel(const float* in, float* out) {
  __shared__ float tile[2048];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
"""
extension = load_inline(
    name="reversed", cpp_sources="", cuda_sources=CUDA_SOURCE, functions=[], no_implicit_headers=True
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.reversed(x)
'''

PLAIN_CANDIDATE = '''
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * 2
'''


@dataclass
class BuildPool:
    """A folder of candidates and a cache, and a way to build what is written there."""

    folder: Path
    cache: Cache
    settings: Settings = SETTINGS
    device_arch: str | None = None
    device: DeviceFacts | None = None

    def write(self, name: str, source: str) -> Candidate:
        path = self.folder / f"{name}.py"
        path.write_text(source)
        return read_candidate(path)

    def build(self, *candidates: Candidate, **changes: object) -> list[Build]:
        toolchain = replace(find_toolchain(self.device_arch), **changes)
        with BuildQueue(candidates, toolchain, self.cache, self.settings, device=self.device) as queue:
            return [queue.result(each) for each in candidates]


@pytest.fixture
def build_pool(tmp_path):
    (tmp_path / "candidates").mkdir()
    return BuildPool(tmp_path / "candidates", Cache(tmp_path / "cache"))


@pytest.fixture(scope="session")
def new_pool(tmp_path_factory):
    """Makes a build pool of its own for each caller that several tests share."""

    def make(name: str) -> BuildPool:
        folder = tmp_path_factory.mktemp(name)
        (folder / "candidates").mkdir()
        return BuildPool(folder / "candidates", Cache(folder / "cache"))

    return make


@pytest.fixture(scope="session")
def built_pool(new_pool):
    """A build pool in which a C++ and a CUDA candidate have really been built, in parallel."""
    build_pool = new_pool("built")
    candidates = [build_pool.write("doubled", CPP_CANDIDATE), build_pool.write("reversed", CUDA_CANDIDATE)]
    build_pool.build(*candidates)
    return build_pool


needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
needs_nvcc = pytest.mark.skipif(find_toolchain(None).nvcc_path is None, reason="there is no nvcc")
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="there is no Triton")
