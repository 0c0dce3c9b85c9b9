"""What a candidate hears of its device while it is built, where there is none."""

from __future__ import annotations

import textwrap

import pytest

from harness.build.device_answers import DeviceFacts, card_of
from harness.model.verdict import ReasonCode, Status
from tests.build.conftest import needs_cxx, needs_nvcc

pytestmark = pytest.mark.processes

H200 = DeviceFacts("NVIDIA H200", "9.0", 132, 150 << 30, 60 << 20)
MODEL = """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""
CPP = '''load_inline("asks", """
#include <Python.h>
static int sms = SMS;
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "asks", nullptr, 0, nullptr};
PyMODINIT_FUNC PyInit_asks() { return PyModule_Create(&module); }
""", extra_cflags=["-O0", f"-DSMS={sms}"], no_implicit_headers=True)'''
CUDA = (
    'load_inline("asks", "", cuda_sources="__global__ void k(float* x) { x[0] = SMS; }", functions=[], '
    'no_implicit_headers=True, extra_cuda_cflags=[f"-DSMS={sms}"])'
)


def asking(question: str, then: str = "") -> str:
    """A candidate that asks at its import, and builds with what it hears."""
    lines = ["import torch", "from torch.utils.cpp_extension import load_inline", question, then]
    return "\n".join(lines) + MODEL


@pytest.mark.parametrize(("arch", "per_block"), [("7.5", 64), ("8.6", 99), ("8.0", 163), ("9.0a", 227), ("12.0a", 99)])
def test_a_card_of_an_architecture_has_its_shared_memory(arch, per_block):
    assert card_of(arch).properties()["shared_memory_per_block_optin"] == per_block << 10


def test_an_architecture_of_which_no_card_is_known_is_answered_by_nobody():
    assert card_of("5.2") is None
    assert DeviceFacts("a later one", "13.0", 200, 1 << 40, 1 << 28).properties()["warp_size"] == 32


@pytest.mark.slow
@needs_cxx
@needs_nvcc
@pytest.mark.parametrize("question", [
    "sms = torch.cuda.get_device_properties(0).multi_processor_count",
    "sms = torch.cuda.get_device_properties('cuda').multi_processor_count if torch.cuda.is_available() else 1",
    "assert torch.cuda.is_available(), 'CUDA is required'\nmajor, minor = torch.cuda.get_device_capability()\nsms = 132",
])
def test_for_a_run_on_a_gpu_it_is_built_with_what_it_would_hear_there(build_pool, question):
    build_pool.device_arch, build_pool.device = "9.0a", H200
    (build,) = build_pool.build(build_pool.write("asks", asking(question, CPP)))
    assert build.verdict is None and not build.warnings
    assert len(build.extensions) == 1


@pytest.mark.slow
@needs_cxx
@needs_nvcc
def test_one_that_uses_the_gpu_at_once_is_built_as_where_there_is_none(build_pool):
    build_pool.device_arch, build_pool.device = "9.0a", H200
    question = "x = torch.ones(1, device='cuda' if torch.cuda.is_available() else 'cpu')\nsms = 1"
    (build,) = build_pool.build(build_pool.write("asks", asking(question, CPP)))
    assert build.verdict is None and not build.warnings
    assert len(build.extensions) == 1


@pytest.mark.slow
@needs_cxx
@needs_nvcc
def test_a_mistake_of_its_own_is_told_though_it_is_imported_twice(build_pool):
    build_pool.device_arch, build_pool.device = "9.0a", H200
    (build,) = build_pool.build(build_pool.write("mistaken", asking("sms = undefined_name")))
    assert build.verdict.reason_code is ReasonCode.IMPORT_ERROR
    assert "mistaken.py:3: NameError" in build.verdict.reason


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("question", [
    "sms = torch.cuda.get_device_properties(0).multi_processor_count",
    "assert torch.cuda.is_available(), 'a GPU is required'\nsms = 1",
])
def test_without_a_gpu_it_is_compiled_for_a_card_of_the_architecture(build_pool, question):
    (build,) = build_pool.build(build_pool.write("asks", asking(question, CUDA)))
    assert (build.verdict.status, build.verdict.reason_code) == (Status.COMPILED, ReasonCode.NO_GPU)


@pytest.mark.slow
@needs_nvcc
def test_without_a_gpu_one_that_can_do_without_takes_its_own_way(build_pool):
    text = textwrap.dedent("""
        import torch
        from torch.utils.cpp_extension import load_inline
        if torch.cuda.is_available():
            load_inline("asks", "", cuda_sources="__global__ void k() {}", functions=[], no_implicit_headers=True)
    """) + MODEL
    (build,) = build_pool.build(build_pool.write("either", text))
    assert build.verdict is None and not build.extensions


@pytest.mark.parametrize("nvcc", [pytest.param({}, marks=needs_nvcc, id="nvcc"), pytest.param({"nvcc_path": None}, id="none")])
@pytest.mark.parametrize("question", [
    "torch.cuda.get_device_properties(0)", "assert torch.cuda.is_available(), 'a GPU is required'",
    "assert torch.cuda.is_available()",
])
def test_without_a_gpu_one_that_builds_nothing_is_skipped_with_a_compiler_or_without(build_pool, question, nvcc):
    source = asking(question).replace("from torch.utils.cpp_extension import load_inline\n", "")
    (build,) = build_pool.build(build_pool.write("asks", source), **nvcc)
    assert (build.verdict.status, build.verdict.reason_code) == (Status.SKIPPED, ReasonCode.NO_GPU)
    assert build.verdict.reason.startswith("it needs a GPU while it is imported (")


def test_without_a_gpu_one_that_pytorchs_own_cuda_modules_fail_is_skipped(build_pool):
    """PyTorch without CUDA has no version of it to look at, and says so in words about something else."""
    question = "kernel = torch.cuda._compile_kernel('__global__ void k(float* x) {}', 'k')"
    (build,) = build_pool.build(build_pool.write("asks", asking(question).replace("load_inline", "CUDA_HOME")))
    assert (build.verdict.status, build.verdict.reason_code) == (Status.SKIPPED, ReasonCode.NO_GPU)
