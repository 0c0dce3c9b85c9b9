"""The stand-in for PyTorch's headers: what it holds for which source. That usual launchers build with it and do the same
is tested beside this, for C++ and for CUDA.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.build import stand_in_headers

pytest.importorskip("torch")
pytest.importorskip("setuptools")
from torch.utils import cpp_extension

TORCH_INCLUDE = Path(cpp_extension.include_paths()[0])
SOURCE = "#include <torch/extension.h>\n"


def written(folder, *cpp, cuda=()):
    assert stand_in_headers.write(folder, TORCH_INCLUDE, [SOURCE, *cpp], list(cuda))
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.h")}


def test_it_includes_the_operators_that_are_named_and_no_others(tmp_path):
    core = written(tmp_path, "auto y = torch::softmax(x.cumsum(0), 1); matmul(x, y);")["kernel_referee/tensor.h"]
    assert "<ATen/ops/softmax.h>" in core
    assert "<ATen/ops/matmul.h>" in core  # found by the types of its arguments, without a namespace
    assert "cumsum" not in core  # a method: all of those are there
    assert "<ATen/ops/conv2d.h>" not in core


def test_a_factory_keeps_what_torch_adds_to_it(tmp_path):
    core = written(tmp_path, "torch::zeros({2}, torch::requires_grad())")["kernel_referee/tensor.h"]
    assert "inline at::Tensor zeros(at::IntArrayRef size, at::TensorOptions options" in core
    assert "set_requires_grad(true)" in core


def test_a_variable_called_tensor_does_not_bring_what_makes_tensors_of_literals(tmp_path):
    named = written(tmp_path / "named", "torch::Tensor tensor = x.clone(); tensor.add_(1);")
    made = written(tmp_path / "made", "torch::tensor({1, 2})")
    assert "TensorDataContainer" not in named["kernel_referee/tensor.h"]
    assert "TensorDataContainer" in made["kernel_referee/tensor.h"]


def test_python_is_left_out_of_the_cuda_half_unless_it_speaks_of_it(tmp_path):
    silent = written(tmp_path / "silent", cuda=["torch::Tensor f(torch::Tensor x) { return x; }"])
    bound = written(tmp_path / "bound", cuda=["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}"])
    assert "__CUDACC__" in silent["torch/extension.h"]
    assert "__CUDACC__" not in bound["torch/extension.h"]


@pytest.mark.parametrize("text", [
    "#if PY_VERSION_HEX >= 0x03080000\n#endif", "#ifdef HAVE_UNISTD_H\n#endif", "#ifndef WITH_THREAD\n#define WITH_THREAD 1\n#endif",
    "#define NEW PY_MAJOR_VERSION\n#if NEW > 2\n#endif", "#ifdef DEBUG\n#endif", "#if defined(X) && \\\n  SIZEOF_LONG == 8\n#endif",
])
def test_python_stays_in_the_cuda_half_where_a_condition_may_hang_on_its_macros(tmp_path, text):
    asked = written(tmp_path / "asked", cuda=[SOURCE + text])
    assert "__CUDACC__" not in asked["torch/extension.h"]
    assert stand_in_headers.write(tmp_path / "header", TORCH_INCLUDE, [SOURCE], [SOURCE], [text])
    assert "__CUDACC__" not in (tmp_path / "header" / "torch" / "extension.h").read_text()


@pytest.mark.parametrize("text", [
    "#ifndef TILE\n#define TILE 16\n#endif", "#ifndef KERNELS_H\n#define KERNELS_H\n#endif",
    "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n#else\n#endif", "#if CUDART_VERSION >= 12000 || !defined(NDEBUG)\n#endif",
])
def test_what_the_source_or_the_compiler_defines_is_no_reason_for_python(tmp_path, text):
    assert "__CUDACC__" in written(tmp_path, cuda=[SOURCE + text])["torch/extension.h"]


@pytest.mark.parametrize("text", ["#define NEW(fn, ...) torch::fn(__VA_ARGS__)\nNEW(zeros, {3})", "auto y = torch::zeros({3});"])
def test_a_factory_is_there_for_who_names_it_as_a_word_or_in_a_header(tmp_path, text):
    own = written(tmp_path / "own", text)["kernel_referee/tensor.h"]
    assert stand_in_headers.write(tmp_path / "header", TORCH_INCLUDE, [SOURCE], [], [text])
    for core in (own, (tmp_path / "header" / "kernel_referee" / "tensor.h").read_text()):
        assert "inline at::Tensor zeros(" in core and "<ATen/ops/zeros.h>" in core
        assert "at::Tensor ones(T&&...) = delete;" in core and "at::Tensor zeros(T&&...)" not in core


def test_a_source_with_cublas_keeps_the_context_that_has_its_handle(tmp_path):
    assert "ATen/cuda/CUDAContext.h" in written(tmp_path / "plain", "at::cuda::getCurrentCUDAStream()")
    blas = written(tmp_path / "blas", cuda=["cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();"])
    assert "ATen/cuda/CUDAContext.h" not in blas


@pytest.mark.parametrize("text", [
    "torch::nn::Linear(1, 1)", "struct F : torch::autograd::Function<F> {};", "TORCH_LIBRARY(a, m) {}",
    "#if TORCH_VERSION_MAJOR >= 2", "  #ifndef CHECK", "#elif defined(AT_PARALLEL_OPENMP)", "at::native::empty_cuda()",
    "#include <torch/script.h>", "THPVariable_Wrap(x)",
])
def test_what_lies_outside_it_is_left_to_the_stock_headers_at_once(text, tmp_path):
    assert not stand_in_headers.write(tmp_path, TORCH_INCLUDE, [SOURCE, text], [])
    assert not list(tmp_path.iterdir())


def test_a_source_without_pytorch_gets_none(tmp_path):
    assert not stand_in_headers.write(tmp_path, TORCH_INCLUDE, [], ['extern "C" void launch();'])


def test_a_pytorch_that_looks_different_gets_none(tmp_path):
    (tmp_path / "include").mkdir()
    assert not stand_in_headers.write(tmp_path / "slim", tmp_path / "include", [SOURCE], [])


@pytest.mark.parametrize("text", [
    "#if defined(TORCH_VERSION_MAJOR) && TORCH_VERSION_MAJOR >= 2\n#endif",
    "#if defined(NEVER) || \\\n    TORCH_VERSION_MAJOR >= 2\n#endif",
    "#define NEW_API TORCH_VERSION_MAJOR\n#if NEW_API >= 2\n#endif",
    "#define NEW_API \\\n  (TORCH_VERSION_MAJOR >= 2)\n#ifdef X\n#elif NEW_API\n#endif",
    "#ifdef RECORD_FUNCTION\n#endif", "#ifndef SOFT_ASSERT\n#endif", "# if _TORCH_LIBRARY_IMPL\n#endif",
])
def test_what_hangs_on_a_macro_that_it_may_lack_is_built_without_it_wherever_that_is_asked(tmp_path, text):
    assert not stand_in_headers.write(tmp_path / "own", TORCH_INCLUDE, [SOURCE, text], [])
    assert not stand_in_headers.write(tmp_path / "cuda", TORCH_INCLUDE, [SOURCE], [text])
    assert not stand_in_headers.write(tmp_path / "header", TORCH_INCLUDE, [SOURCE], [], [text])


@pytest.mark.parametrize("text", [
    "#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda())\n#ifdef __CUDACC__\n#endif",
    "#ifdef TILE\n#define WIDE TORCH_CHECK\n#endif", "#if CUDART_VERSION >= 12000\n#endif", "TORCH_CHECK(MATORCH_ == 1);",
])
def test_other_conditions_and_other_uses_of_their_macros_are_no_reason(tmp_path, text):
    assert stand_in_headers.write(tmp_path, TORCH_INCLUDE, [SOURCE, text], [], [text])


def test_headers_are_followed_through_folders_and_those_of_others_are_not(tmp_path):
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    (tmp_path / "given").mkdir()
    (tmp_path / "parts" / "one.cuh").write_text('#include "deep/two.h"\n#include <vector>\n// one')
    (tmp_path / "parts" / "deep" / "two.h").write_text('# include "../one.cuh"\n#include <three.h>\n// two')
    (tmp_path / "given" / "three.h").write_text("// three")
    (tmp_path / "given" / "four.h").write_text("// four")
    found = stand_in_headers.headers_of(['#include "parts/one.cuh"\n#include <torch/extension.h>\n'], [tmp_path, tmp_path / "given"])
    assert sorted(text.rpartition("// ")[2] for text in found) == ["one", "three", "two"]


def test_the_version_is_there_with_the_headers_that_bring_it_and_with_no_others(tmp_path):
    files = written(tmp_path)
    with_version = {name for name, text in files.items() if "<torch/version.h>" in text}
    assert with_version == {"torch/extension.h", "torch/all.h", "torch/torch.h"}
