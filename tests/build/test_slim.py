"""The stand-in for PyTorch's headers: what it holds for which source. That usual launchers build with it and do the same
is tested beside this, for C++ and for CUDA.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.build import slim

pytest.importorskip("torch")
pytest.importorskip("setuptools")
from torch.utils import cpp_extension

TORCH_INCLUDE = Path(cpp_extension.include_paths()[0])
SOURCE = "#include <torch/extension.h>\n"


def written(folder, *cpp, cuda=()):
    assert slim.write(folder, TORCH_INCLUDE, [SOURCE, *cpp], list(cuda))
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
    assert not slim.write(tmp_path, TORCH_INCLUDE, [SOURCE, text], [])
    assert not list(tmp_path.iterdir())


def test_a_source_without_pytorch_gets_none(tmp_path):
    assert not slim.write(tmp_path, TORCH_INCLUDE, [], ['extern "C" void launch();'])


def test_a_pytorch_that_looks_different_gets_none(tmp_path):
    (tmp_path / "include").mkdir()
    assert not slim.write(tmp_path / "slim", tmp_path / "include", [SOURCE], [])
