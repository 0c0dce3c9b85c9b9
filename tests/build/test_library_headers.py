"""cuBLAS, cuSPARSE and cuSOLVER where CUDA is only compiled: whose headers are made up, and whose never."""

from __future__ import annotations

import pytest

from harness.build import library_headers
from harness.build.toolchain import find_toolchain
from harness.model.verdict import Status

pytest.importorskip("torch")
pytest.importorskip("setuptools")
from harness.build import compile_only

pytestmark = pytest.mark.processes

NVCC = find_toolchain(None).nvcc_path
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="there is no nvcc")

CANDIDATE = '''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <ATen/cuda/CUDAContext.h>
__global__ void twice_kernel(float* out) { out[threadIdx.x] *= 2.0f; }
void twice(float* out) {
  BODY
  twice_kernel<<<1, 256, 0, at::cuda::getCurrentCUDAStream()>>>(out);
}
"""
extension = load_inline("twice", "", CUDA, no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    pass
'''
# A library of our own in place of cuBLAS, for a wheel that a test can bring.
WHEEL = "typedef struct cublasContext* cublasHandle_t;\nenum cublasStatus_t : unsigned int;\n" \
    "int cublasOnly(cublasHandle_t);\n"


def compiled(place, body):
    source = CANDIDATE.split('"""')[1].replace("BODY", body)
    arguments = {"name": "twice", "cuda_sources": source, "no_implicit_headers": True}
    place.mkdir()
    return compile_only.compile_cuda("load_inline", arguments, place, NVCC, ["sm_90a"])


@pytest.mark.parametrize(("text", "missing"), [
    ("cublasSgemm(handle);", {"cublas_v2.h", "cublasLt.h"}), ("TORCH_CUDABLAS_CHECK(x)", {"cublas_v2.h", "cublasLt.h"}),
    ("at::cuda::getCurrentCUDASparseHandle()", {"cusparse.h"}),
    ("#include <cusolverDn.h>", {"cusolverDn.h", "cusolver_common.h"}),
    ("int a;", set()),
])
def test_of_a_library_that_a_source_names_nothing_is_made_up(text, missing, tmp_path):
    library_headers.write(tmp_path / "none", [])
    library_headers.write(tmp_path / "some", ["int b;", text])
    everything, written = ({path.name for path in (tmp_path / name).iterdir()} for name in ("none", "some"))
    assert everything - written == missing and len(everything) == 5


@pytest.mark.parametrize(("log", "may"), [
    ('CUDABlas.h(12): error: identifier "cublasOperation_t" is undefined\n', True),
    ('/torch/ATen/cuda/CUDASparseDescriptors.h(9): error: expected a declaration\n', True),
    ('cuda.cu(9): error: expected a ";"\n', False),
    ('cuda.cu(9): warning: cusparse is old\n', False),
])
def test_an_error_about_what_was_made_up_is_none_of_the_candidates(log, may, tmp_path):
    assert library_headers.write(tmp_path, []).may_lack_for(log) is may


def test_wheels_with_headers_of_libraries_are_found_and_others_are_not(tmp_path):
    for wheel, header in (("cu13", "cublas_v2.h"), ("cusparse", "cusparse.h"), ("nvtx", "nvtx3.h")):
        (tmp_path / "nvidia" / wheel / "include").mkdir(parents=True)
        (tmp_path / "nvidia" / wheel / "include" / header).touch()
    found = library_headers.wheel_folders([str(tmp_path), str(tmp_path / "absent"), str(tmp_path)])
    assert [folder.parent.name for folder in found] == ["cu13", "cusparse"]


@needs_nvcc
def test_pytorchs_own_cuda_context_compiles_for_a_source_that_names_no_library(tmp_path):
    assert compiled(tmp_path / "right", "").passed
    wrong = compiled(tmp_path / "wrong", 'int wrong = "a";')
    assert 'cuda.cu(5): error: a value of type "const char *"' in wrong.log
    assert "cusparse.h" not in wrong.log


@needs_nvcc
def test_a_library_that_a_source_names_is_checked_against_the_wheel_that_brings_it(tmp_path, monkeypatch):
    folder = tmp_path / "site" / "nvidia" / "cublas" / "include"
    folder.mkdir(parents=True)
    for name in ("cublas_v2.h", "cublasLt.h"):
        (folder / name).write_text(f"#pragma once\n{WHEEL}typedef struct cublasLtContext* cublasLtHandle_t;\n")
    found = library_headers.wheel_folders  # of this one alone: PyTorch's build for CUDA brings wheels of its own
    monkeypatch.setattr(library_headers, "wheel_folders", lambda entries: found([str(tmp_path / "site")]))
    call = "cublasOnly(at::cuda::getCurrentCUDABlasHandle()"
    right = compiled(tmp_path / "right", f"{call});")
    if "cublasOnly" in right.log:
        pytest.skip("this CUDA toolkit has a cuBLAS of its own")
    assert right.passed, right.log
    assert "too many arguments" in compiled(tmp_path / "wrong", f"{call}, 1);").log


@needs_nvcc
def test_a_candidates_own_error_beside_the_cuda_context_is_shown_and_not_skipped(build_pool):
    (build,) = build_pool.build(build_pool.write("wrong", CANDIDATE.replace("BODY", 'int wrong = "a";')))
    assert build.verdict.status is Status.BUILD_FAILED
    assert build.verdict.reason.startswith("wrong.py:9: a value of type")
