"""Kernels that installed packages bring as text, and what a candidate's kernel of such a name is worth."""

from __future__ import annotations

import importlib.util

import pytest

from harness.attribution import installed_kernels
from harness.attribution.installed_kernels import brought_by_packages, kernels_of
from harness.attribution.kernel_ownership import Span, kind_on_gpu, owners_of
from harness.attribution.source_names import SourceNames
from harness.attribution.symbols import OwnNames

PACKAGE = '''
import triton, numba
from triton import jit

@triton.autotune(
    configs=[], key=["M"],
)
@triton.jit
def tuned_kernel(a, M): pass

@jit
def plain_kernel(a): pass

@numba.cuda.jit("void(float32[:])")
def numbas_kernel(a): pass

def given(a): pass
made = triton.jit(given)

@triton.jit
class Never: pass

@cute.kernel
def gemm(a): pass

@T.prim_func
def main(a): pass

def helper(): "@triton.jit\\ndef in_a_docstring(): pass"

CUDA = "extern \\"C\\" __global__ void in_a_string(float* a) { }"
'''


def kind_of(spans, evidence, shipped):
    """The kind of what ran, with `shipped` for the look into PyTorch's libraries."""
    return kind_on_gpu(spans, owners_of({span.name for span in spans}, evidence, shipped))


@pytest.fixture
def packages(tmp_path, monkeypatch):
    (tmp_path / "site" / "fast").mkdir(parents=True)
    (tmp_path / "site" / "fast" / "ops.py").write_text(PACKAGE)
    (tmp_path / "site" / "fast" / "tests").mkdir()
    (tmp_path / "site" / "fast" / "tests" / "test_ops.py").write_text("import triton\n@triton.jit\ndef kernel(a): pass\n")
    monkeypatch.setattr(installed_kernels, "installed_folders", lambda: {str(tmp_path / "site")})
    return tmp_path / "site"


def spans(*names):
    return [Span(name, 10.0 * place, 10.0) for place, name in enumerate(names)]


def test_what_a_file_has_compiled_for_a_gpu_is_found_and_nothing_else_of_it(packages):
    assert kernels_of(packages / "fast" / "ops.py") == {
        "tuned_kernel", "plain_kernel", "numbas_kernel", "given", "in_a_string", "kernel_cutlass_gemm", "main_kernel",
    }


def test_a_name_is_told_with_the_file_that_brings_it_and_those_of_tests_are_everybodys(packages):
    assert brought_by_packages(["tuned_kernel", "helper", "kernel", "mine"]) == {"tuned_kernel": "fast/ops.py"}


def test_a_file_that_is_no_python_brings_nothing(tmp_path):
    (tmp_path / "x.py").write_text("import triton\n@triton.jit\ndef broken(:\n")
    assert kernels_of(tmp_path / "x.py") == kernels_of(tmp_path / "none.py") == set()


@pytest.mark.parametrize("evidence", [
    OwnNames(triton=frozenset({"tuned_kernel"}), source=SourceNames(functions=frozenset({"tuned_kernel"}))),
    OwnNames(source=SourceNames(kernels=frozenset({"tuned_kernel"}))),
])
def test_a_kernel_that_has_a_packages_name_is_unknown_whatever_the_source_defines(packages, evidence):
    found = kind_of(spans("tuned_kernel"), evidence, shipped=lambda names: ())
    assert found.kind == "unknown"
    assert "fast/ops.py has a kernel of that name too" in found.notes[-1] and "another name" in found.notes[-1]


def test_a_kernel_of_a_name_of_its_own_is_its_own_and_of_its_build_whatever_packages_have(packages):
    own = OwnNames(triton=frozenset({"mine"}), source=SourceNames(functions=frozenset({"mine"})))
    assert kind_of(spans("mine"), own, shipped=lambda names: ()).kind == "custom"
    built = OwnNames(extension=frozenset({"tuned_kernel"}))
    assert kind_of(spans("tuned_kernel"), built, shipped=lambda names: ()).kind == "custom"


def test_a_kernel_that_only_the_source_tells_of_is_looked_up_in_pytorchs_libraries(packages):
    evidence = OwnNames(source=SourceNames(kernels=frozenset({"scan_rows"})))
    name = "void scan_rows<float>(float*, int)"
    assert kind_of(spans(name), evidence, shipped=lambda names: set()).kind == "custom"
    assert kind_of(spans(name), evidence, shipped=lambda names: set(names)).kind == "library"


@pytest.mark.slow
def test_pytorchs_own_kernels_in_triton_are_known():
    if importlib.util.find_spec("torch.sparse._triton_ops") is None:
        pytest.skip("this PyTorch has none")
    assert "_bsr_strided_addmm_kernel" in brought_by_packages(["_bsr_strided_addmm_kernel", "tril_matmul_kernel"])
    assert "tril_matmul_kernel" not in brought_by_packages(["tril_matmul_kernel"])


@pytest.mark.parametrize(("name", "stem"), [
    ("kernel_cutlass_gemm_tensorptrf32_0", "kernel_cutlass_gemm"), ("kernel_cutlass_gemm_mine_tensorptrf32_0", "kernel_cutlass_gemm_mine"),
    ("main_kernel", "main_kernel"), ("main_kernel_2", "main_kernel"),
])
def test_a_kernel_that_may_be_of_a_packages_function_in_cute_dsl_or_tilelang_is_unknown(packages, name, stem):
    evidence = OwnNames(source=SourceNames(stems=frozenset({stem})))
    found = kind_of(spans(name), evidence, shipped=lambda names: ())
    assert found.kind == "unknown" and "fast/ops.py has a kernel of that name too" in found.notes[-1]


def test_a_kernel_of_a_function_in_cute_dsl_that_no_package_has_is_its_own(packages):
    evidence = OwnNames(source=SourceNames(stems=frozenset({"kernel_cutlass_tril", "tile_kernel"})))
    names = ("kernel_cutlass_tril_gemm_0", "tile_kernel", "tile_kernel_1")
    assert kind_of(spans(*names), evidence, shipped=lambda names: ()).kind == "custom"
