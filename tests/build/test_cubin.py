"""Constant memory of kernels, which ptxas tells for sm_89 and earlier, and a cubin always."""

from __future__ import annotations

import subprocess

import pytest

from harness.build.compiler_report import kernel_reports
from harness.build.cubin import constant_bytes, read_told, told
from harness.build.toolchain import find_toolchain

from .conftest import needs_nvcc

pytestmark = pytest.mark.processes

SOURCE = """
__constant__ float table[100];
__constant__ float more[1000];
template <int N> __global__ void scaled(float* out, const float* in, int n) {
  out[threadIdx.x] = in[n] * table[threadIdx.x % 100] * N;
}
__global__ void plain(float* out, double value) { out[threadIdx.x] = 1.5f * value; }
template __global__ void scaled<3>(float*, const float*, int);
"""
SCALED, PLAIN = "_Z6scaledILi3EEvPfPKfi", "_Z5plainPfd"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """For an architecture: what nvcc said, and the cubin."""
    folder = tmp_path_factory.mktemp("cubins")
    (folder / "a.cu").write_text(SOURCE)

    def compile_for(sm):
        made, nvcc = folder / f"a.{sm}.cubin", find_toolchain(None).nvcc_path
        command = [nvcc, "-cubin", f"-arch={sm}", "-Xptxas=-v", "-o", str(made), str(folder / "a.cu")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr, made.read_bytes()

    return compile_for


@needs_nvcc
def test_where_ptxas_says_it_the_cubin_says_the_same(compiled):
    said, cubin = compiled("sm_80")
    by_ptxas = {each.kernel: each.constant_bytes for each in kernel_reports(said)}
    found = constant_bytes(cubin)
    assert {"scaled<3>": found[SCALED], "plain": found[PLAIN]} == by_ptxas
    assert found[SCALED] - found[PLAIN] == 4  # three arguments of 20 bytes, and two of 16


@needs_nvcc
@pytest.mark.parametrize("sm", ["sm_90a", "sm_100"])
def test_where_ptxas_does_not_the_reports_have_it_of_the_cubin(compiled, sm):
    said, cubin = compiled(sm)
    assert {each.constant_bytes for each in kernel_reports(said)} == {None}
    log = said + told(constant_bytes(cubin), sm)
    by_name = {each.kernel: each.constant_bytes for each in kernel_reports(log)}
    assert by_name["scaled<3>"] - by_name["plain"] == 4
    assert by_name["plain"] > 4400  # the variables


@needs_nvcc
def test_what_is_cut_short_or_no_cubin_says_nothing(compiled):
    _, cubin = compiled("sm_80")
    for data in (b"", b"text", cubin[:40], cubin[: len(cubin) // 2], b"\x7fELF\x01" + cubin[5:]):
        assert constant_bytes(data) == {}


def test_what_is_told_is_read_again_for_its_kernel_and_architecture():
    log = told({"_Z1av": 528, "b": 4}, "sm_90a") + told({"b": 8}, "sm_100")
    assert read_told(f"noise\n{log}") == {("_Z1av", "sm_90a"): 528, ("b", "sm_90a"): 4, ("b", "sm_100"): 8}
