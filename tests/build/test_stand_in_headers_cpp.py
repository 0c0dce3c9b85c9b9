"""C++ launchers of the corpus build with the stand-in for PyTorch's headers, and return what they return without it.

The corpus in tests/fixtures/launchers is written as language models write launchers for KernelBench. Without the
stand-in they are built as one: PyTorch's headers take the longest to read.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import runpy
from pathlib import Path

import pytest

from harness.build import stand_in_headers
from harness.model.verdict import Status

torch = pytest.importorskip("torch")
pytest.importorskip("setuptools")
from torch.utils import cpp_extension

from .conftest import CPP_CANDIDATE

LAUNCHERS = Path(__file__).resolve().parents[1] / "fixtures" / "launchers"
CPP = ["cpp_accessor", "cpp_operators", "cpp_parallel", "cpp_containers"]
FUNCTIONS = ("leaky", "many", "row_norms")  # of the first three; the last defines its module itself
MODULE = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"

pytestmark = pytest.mark.slow


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


def call_of(name):
    """The arguments with which a launcher calls `load_inline`."""
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpp_extension, "load_inline", lambda **arguments: calls.append(arguments))
        runpy.run_path(str(LAUNCHERS / f"{name}.py"))
    (arguments,) = calls
    return arguments


@pytest.fixture(scope="module")
def stock(new_pool):
    """The launchers as one module, built without the stand-in."""
    calls = [call_of(name) for name in CPP]
    bound = "".join(f'  m.def("{name}", torch::wrap_pybind_function({name}));\n' for name in FUNCTIONS)
    text = "".join(call["cpp_sources"] for call in calls).replace(MODULE, f"{MODULE}\n{bound}")
    text = re.sub(r'(?<!")\bCounter\b', "StockCounter", text)  # a process knows a type of this name once
    together = f"""
import torch
from torch.utils.cpp_extension import load_inline

extension = load_inline("together", {text!r})


class ModelNew(torch.nn.Module):
    pass
"""
    build_pool = new_pool("stock")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(stand_in_headers.STOCK_VARIABLE, "1")
        (build,) = build_pool.build(build_pool.write("together", together))
    assert (build.verdict, build.headers) == (None, "stock"), build.verdict
    return loaded(build)


@pytest.mark.parametrize("name", CPP)
def test_a_cpp_launcher_returns_the_same_with_and_without_it(name, build_pool, stock, monkeypatch):
    monkeypatch.delenv(stand_in_headers.STOCK_VARIABLE, raising=False)
    (ours,) = build_pool.build(build_pool.write(name, (LAUNCHERS / f"{name}.py").read_text()))
    assert (ours.verdict, ours.headers) == (None, "slim"), ours.verdict
    for one, other in zip(called(name, loaded(ours)), called(name, stock), strict=True):
        assert torch.equal(one, other)
        assert (one.dtype, one.requires_grad, one.stride()) == (other.dtype, other.requires_grad, other.stride())


def test_what_it_cannot_build_is_built_with_the_stock_headers_and_the_build_says_so(build_pool):
    # The operator is pieced together, so its header is not found; the stock headers have them all.
    source = '''
import torch
from torch.utils.cpp_extension import load_inline

extension = load_inline("pieced", r"""
#include <Python.h>
#include <ATen/ATen.h>
#define NAMED(a, b) a##b

static PyObject* f(PyObject*, PyObject* pointer) {
  at::Tensor x = at::from_blob(PyLong_AsVoidPtr(pointer), {2});
  x.copy_(at::NAMED(soft, max)(x, 0));
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"f", f, METH_O, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "pieced", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_pieced() { return PyModule_Create(&module); }
""", extra_cflags=["-O0"], no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    pass
'''
    (build,) = build_pool.build(build_pool.write("pieced", source))
    assert build.verdict is None, build.verdict
    assert build.headers == "stock"
    assert "is not a member" not in build.log
    assert loaded(build).__name__ == "pieced"
    x = torch.ones(2)
    loaded(build).f(x.data_ptr())
    assert torch.equal(x, torch.full((2,), 0.5))


def test_a_function_that_is_bound_and_that_nobody_declares_is_told_without_the_stock_headers(build_pool):
    source = CPP_CANDIDATE.replace('functions="doubled"', 'functions=["doubled", "doubled_twice"]')
    (build,) = build_pool.build(build_pool.write("bound", source))
    assert (build.verdict.status, build.headers) == (Status.BUILD_FAILED, "slim"), build.verdict
    assert "‘doubled_twice’ was not declared" in build.verdict.reason and "bound.py:" in build.verdict.reason


def test_where_both_fail_the_errors_are_those_of_the_stock_headers(build_pool):
    source = '''
import torch
from torch.utils.cpp_extension import load_inline

extension = load_inline("wrong", """
#include <ATen/ATen.h>
at::Tensor f(at::Tensor x) {
  return x.there_is_none();
}
""", no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    pass
'''
    (build,) = build_pool.build(build_pool.write("wrong", source))
    assert build.verdict.status is Status.BUILD_FAILED
    assert "wrong.py:8" in build.verdict.reason
    assert "-headers" not in build.log
    assert build.log.count("there_is_none") < 4
