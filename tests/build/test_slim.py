"""The stand-in for PyTorch's headers: what it holds, and that usual launchers build with it and do the same.

The corpus in tests/fixtures/launchers is written as language models write launchers for KernelBench. C++ is run here;
CUDA is compiled, and its machine code is compared with that of a build with the stock headers.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import shutil
from pathlib import Path

import pytest

from harness.build import slim
from harness.build.environment import find_toolchain
from harness.verdict import Status

torch = pytest.importorskip("torch")
pytest.importorskip("setuptools")
from torch.utils import cpp_extension

from harness.build import compile_only

LAUNCHERS = Path(__file__).resolve().parents[1] / "fixtures" / "launchers"
TORCH_INCLUDE = Path(cpp_extension.include_paths()[0])
CUDA = sorted(path.stem for path in LAUNCHERS.glob("*.py") if not path.stem.startswith(("cpp_", "needs_stock")))
CPP = ["cpp_accessor", "cpp_containers", "cpp_operators", "cpp_parallel"]
needs_nvcc = pytest.mark.skipif(find_toolchain(None).nvcc_path is None, reason="there is no nvcc")
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


def loaded(build):
    (extension,) = build.extensions
    loader = importlib.machinery.ExtensionFileLoader(extension.module_name, str(extension.path))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_file_location(extension.module_name, extension.path, loader=loader)
    )
    loader.exec_module(module)
    return module


def called(name, module):
    """What the functions of a C++ launcher of the corpus return for inputs that do not change."""
    x = torch.linspace(-2, 3, 15).reshape(5, 3)
    if name == "cpp_accessor":
        return [module.leaky(x, 0.1)]
    if name == "cpp_parallel":
        return [module.row_norms(x)]
    if name == "cpp_operators":
        return module.many(x)
    made = module.describe(x, torch.tensor(2.0), "y", [1, 2], True, torch.float64)
    counter = module.Counter(3)
    return [made["y"], made["shaped"], counter.add(x), torch.tensor(counter.count)]


@pytest.mark.slow
@pytest.mark.parametrize("name", CPP)
def test_a_cpp_launcher_returns_the_same_with_and_without_it(name, workshop, monkeypatch):
    candidate = workshop.write(name, (LAUNCHERS / f"{name}.py").read_text())
    monkeypatch.delenv(slim.STOCK_VARIABLE, raising=False)
    (ours,) = workshop.build(candidate)
    monkeypatch.setenv(slim.STOCK_VARIABLE, "1")
    (stock,) = workshop.build(candidate)
    assert (ours.verdict, stock.verdict) == (None, None), (ours.verdict, stock.verdict)
    assert (ours.headers, stock.headers) == ("slim", "stock")
    expected = called(name, loaded(stock))
    for one, other in zip(called(name, loaded(ours)), expected, strict=True):
        assert torch.equal(one, other)
        assert (one.dtype, one.requires_grad, one.stride()) == (other.dtype, other.requires_grad, other.stride())


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("name", CUDA)
def test_a_cuda_launcher_compiles_with_it(name, workshop):
    (build,) = workshop.build(workshop.write(name, (LAUNCHERS / f"{name}.py").read_text()))
    assert build.verdict.status is Status.COMPILED, build.verdict.reason
    assert build.headers == "slim", build.log[-2000:]
    assert build.kernels


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("name", ["cumsum_scan", "wmma_bf16"])
def test_the_machine_code_is_that_of_a_build_with_the_stock_headers(name, tmp_path):
    values = {
        target.id: ast.literal_eval(node.value)
        for node in ast.parse((LAUNCHERS / f"{name}.py").read_text()).body
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    made = []
    for headers in ("slim", "stock"):
        place = tmp_path / "place"  # the same for both: a kernel's symbol may hold the name of its file
        place.mkdir()
        arguments = {"name": name, "cuda_sources": values["CUDA_SOURCE"]}
        if headers == "slim":
            written(tmp_path / "slim", values["CPP_SOURCE"], cuda=[values["CUDA_SOURCE"]])
            arguments["extra_include_paths"] = [str(tmp_path / "slim")]
        came = compile_only.compile_cuda("load_inline", arguments, place, find_toolchain(None).nvcc_path, ["sm_90a"])
        assert came.passed, came.log
        made.append((place / "0.sm_90a.cubin").read_bytes())
        shutil.rmtree(place)
    assert made[0] == made[1]


@pytest.mark.slow
def test_what_it_cannot_build_is_built_with_the_stock_headers_and_the_build_says_so(workshop):
    # The operator is pieced together, so its header is not found; the stock headers have them all.
    source = '''
import torch
from torch.utils.cpp_extension import load_inline

extension = load_inline("pieced", """
#define NAMED(a, b) a##b
torch::Tensor f(torch::Tensor x) { return at::NAMED(soft, max)(x, 0); }
""", functions="f", extra_cflags=["-O0"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.f(x)
'''
    (build,) = workshop.build(workshop.write("pieced", source))
    assert build.verdict is None, build.verdict
    assert build.headers == "stock"
    assert "is not a member" not in build.log
    assert loaded(build).__name__ == "pieced"
    assert torch.equal(loaded(build).f(torch.ones(2)), torch.full((2,), 0.5))


@pytest.mark.slow
def test_where_both_fail_the_errors_are_those_of_the_stock_headers(workshop):
    source = '''
import torch
from torch.utils.cpp_extension import load_inline

extension = load_inline("wrong", """
torch::Tensor f(torch::Tensor x) {
  return x.there_is_none();
}
""", functions="f")


class ModelNew(torch.nn.Module):
    pass
'''
    (build,) = workshop.build(workshop.write("wrong", source))
    assert build.verdict.status is Status.BUILD_FAILED
    assert "wrong.py:7" in build.verdict.reason
    assert "-headers" not in build.log
    assert build.log.count("there_is_none") < 4
