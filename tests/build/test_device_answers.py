"""What a candidate hears of its device while it is built, where there is none."""

from __future__ import annotations

import textwrap

import pytest
import torch

from harness.build.device_answers import DeviceFacts, card_of
from harness.verdict import ReasonCode, Status
from harness.wire.stand_in_gpu import answer_for
from tests.build.conftest import needs_cxx, needs_nvcc

H200 = DeviceFacts("NVIDIA H200", "9.0", 132, 150 << 30, 60 << 20)
MODEL = """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""
CPP = 'load_inline("asks", "int sms() { return SMS; }", functions=["sms"], extra_cflags=["-O0", f"-DSMS={sms}"])'
CUDA = (
    'load_inline("asks", "", cuda_sources="__global__ void k(float* x) { x[0] = SMS; }", functions=[], '
    'no_implicit_headers=True, extra_cuda_cflags=[f"-DSMS={sms}"])'
)


def asking(question: str, then: str = "") -> str:
    """A candidate that asks at its import, and builds with what it hears."""
    lines = ["import torch", "from torch.utils.cpp_extension import load_inline", question, then]
    return "\n".join(lines) + MODEL


@pytest.fixture
def answered():
    yield answer_for
    answer_for(None)


def test_every_usual_question_is_answered_from_the_facts_and_nothing_is_opened(answered):
    answered(H200.properties())
    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    assert torch.cuda.get_device_capability() == (9, 0) and torch.cuda.get_device_name(0) == "NVIDIA H200"
    assert (device.multi_processor_count, device.total_memory, device.L2_cache_size) == (132, 150 << 30, 60 << 20)
    assert (device.warp_size, device.max_threads_per_multi_processor, device.regs_per_multiprocessor) == (32, 2048, 65536)
    assert device.shared_memory_per_multiprocessor == 228 << 10
    assert device.shared_memory_per_block_optin == 227 << 10 and device.shared_memory_per_block == 48 << 10
    assert not torch.cuda.is_initialized()
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(1, device="cuda")


def test_without_facts_all_is_as_it_was(answered):
    before = torch.cuda.is_available, torch.cuda.get_device_properties
    answered(H200.properties())
    answered(H200.properties())
    answered(None)
    assert (torch.cuda.is_available, torch.cuda.get_device_properties) == before


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
def test_for_a_run_on_a_gpu_it_is_built_with_what_it_would_hear_there(workshop, question):
    workshop.device_arch, workshop.device = "9.0a", H200
    (build,) = workshop.build(workshop.write("asks", asking(question, CPP)))
    assert build.verdict is None and not build.warnings
    assert len(build.extensions) == 1


@pytest.mark.slow
@needs_cxx
@needs_nvcc
def test_one_that_uses_the_gpu_at_once_is_built_as_where_there_is_none(workshop):
    workshop.device_arch, workshop.device = "9.0a", H200
    question = "x = torch.ones(1, device='cuda' if torch.cuda.is_available() else 'cpu')\nsms = 1"
    (build,) = workshop.build(workshop.write("asks", asking(question, CPP)))
    assert build.verdict is None and not build.warnings
    assert len(build.extensions) == 1


@pytest.mark.slow
@needs_cxx
@needs_nvcc
def test_a_mistake_of_its_own_is_told_though_it_is_imported_twice(workshop):
    workshop.device_arch, workshop.device = "9.0a", H200
    (build,) = workshop.build(workshop.write("mistaken", asking("sms = undefined_name")))
    assert build.verdict.reason_code is ReasonCode.IMPORT_ERROR
    assert "mistaken.py:3: NameError" in build.verdict.reason


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("question", [
    "sms = torch.cuda.get_device_properties(0).multi_processor_count",
    "assert torch.cuda.is_available(), 'a GPU is required'\nsms = 1",
])
def test_without_a_gpu_it_is_compiled_for_a_card_of_the_architecture(workshop, question):
    (build,) = workshop.build(workshop.write("asks", asking(question, CUDA)))
    assert (build.verdict.status, build.verdict.reason_code) == (Status.COMPILED, ReasonCode.NO_GPU)


@pytest.mark.slow
@needs_nvcc
def test_without_a_gpu_one_that_can_do_without_takes_its_own_way(workshop):
    text = textwrap.dedent("""
        import torch
        from torch.utils.cpp_extension import load_inline
        if torch.cuda.is_available():
            load_inline("asks", "", cuda_sources="__global__ void k() {}", functions=[], no_implicit_headers=True)
    """) + MODEL
    (build,) = workshop.build(workshop.write("either", text))
    assert build.verdict is None and not build.extensions


@needs_nvcc
@pytest.mark.parametrize("question", [
    "torch.cuda.get_device_properties(0)", "assert torch.cuda.is_available(), 'a GPU is required'",
])
def test_without_a_gpu_one_that_builds_nothing_is_skipped(workshop, question):
    (build,) = workshop.build(workshop.write("asks", asking(question)))
    assert (build.verdict.status, build.verdict.reason_code) == (Status.SKIPPED, ReasonCode.NO_GPU)
    assert build.verdict.reason.startswith("it needs a GPU while it is imported (")
