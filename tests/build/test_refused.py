"""A build that nvcc refuses on its way to a GPU, and would refuse with PyTorch's own headers too."""

from __future__ import annotations

import pytest

from harness.model.verdict import ReasonCode, Status

from .conftest import BuildPool, needs_nvcc

pytestmark = pytest.mark.processes

CANDIDATE = '''
import os

import torch
import torch.utils.cpp_extension as cpp_extension

cpp_extension.CUDA_HOME = os.environ["CUDA_HOME"]  # which a PyTorch without CUDA does not look for

SOURCE = r"""
__global__ void filled_kernel(float* out, float value) { out[threadIdx.x] = value; }
torch::Tensor filled(torch::Tensor x) {
  filled_kernel<<<1, 32>>>(x.data_ptr<float>(), 2 + valeu);
  return x;
}
"""
extension = cpp_extension.load_inline("filled", "torch::Tensor filled(torch::Tensor x);", SOURCE, functions=["filled"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.filled(x)
'''


@needs_nvcc
@pytest.mark.timeout(600)
def test_what_no_header_could_mend_is_told_without_pytorchs_own(new_pool):
    build_pool: BuildPool = new_pool("refused")
    build_pool.device_arch = "9.0a"
    (build,) = build_pool.build(build_pool.write("refused", CANDIDATE))
    assert (build.verdict.status, build.verdict.reason_code) == (Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR)
    assert build.verdict.reason.startswith('refused.py:12: identifier "valeu" is undefined')
    assert build.headers == "slim"
    assert "-headers" in build.log, "the folder of the stand-in, in the command that ninja tells"


@needs_nvcc
@pytest.mark.timeout(600)
def test_a_semicolon_that_is_missing_is_told_without_what_follows_from_it(new_pool):
    build_pool: BuildPool = new_pool("unended")
    build_pool.device_arch = "9.0a"
    source = CANDIDATE.replace("  filled_kernel<<<1", "  int one = x.size(0)\n  float value = 1;\n  filled_kernel<<<1")
    source = source.replace("2 + valeu", "one + value")
    (build,) = build_pool.build(build_pool.write("unended", source))
    assert build.verdict.reason.splitlines() == [
        'unended.py:13: expected a ";"', "   13 |   float value = 1;", "      |   ^",
    ]
    assert 'identifier "value" is undefined' in build.log and "-headers" in build.log
