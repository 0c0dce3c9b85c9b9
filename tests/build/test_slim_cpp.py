"""C++ launchers of the corpus build with the stand-in for PyTorch's headers, and return what they return without it.

The corpus in tests/fixtures/launchers is written as language models write launchers for KernelBench. Without the
stand-in those that leave the module's definition to PyTorch are built as one: its headers take the longest to read.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import runpy
from pathlib import Path

import pytest

from harness.build import slim
from harness.verdict import Status

torch = pytest.importorskip("torch")
pytest.importorskip("setuptools")
from torch.utils import cpp_extension

LAUNCHERS = Path(__file__).resolve().parents[1] / "fixtures" / "launchers"
TOGETHER = ["cpp_accessor", "cpp_operators", "cpp_parallel"]
CPP = [*TOGETHER, "cpp_containers"]  # which defines its module itself

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
def stock(new_workshop):
    """Modules of the launchers by their names, built without the stand-in."""
    workshop, calls = new_workshop("stock"), [call_of(name) for name in TOGETHER]
    sources, functions = [call["cpp_sources"] for call in calls], [each for call in calls for each in call["functions"]]
    together = f"""
import torch
from torch.utils.cpp_extension import load_inline

extension = load_inline("together", {sources!r}, functions={functions!r})


class ModelNew(torch.nn.Module):
    pass
"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(slim.STOCK_VARIABLE, "1")
        builds = workshop.build(
            workshop.write("together", together),
            workshop.write("cpp_containers", (LAUNCHERS / "cpp_containers.py").read_text()),
        )
    assert [(build.verdict, build.headers) for build in builds] == 2 * [(None, "stock")]
    modules = [loaded(build) for build in builds]
    return {name: modules[0] if name in TOGETHER else modules[1] for name in CPP}


@pytest.mark.parametrize("name", CPP)
def test_a_cpp_launcher_returns_the_same_with_and_without_it(name, workshop, stock, monkeypatch):
    monkeypatch.delenv(slim.STOCK_VARIABLE, raising=False)
    (ours,) = workshop.build(workshop.write(name, (LAUNCHERS / f"{name}.py").read_text()))
    assert (ours.verdict, ours.headers) == (None, "slim"), ours.verdict
    for one, other in zip(called(name, loaded(ours)), called(name, stock[name]), strict=True):
        assert torch.equal(one, other)
        assert (one.dtype, one.requires_grad, one.stride()) == (other.dtype, other.requires_grad, other.stride())


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
