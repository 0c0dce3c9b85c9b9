"""Which calls are those of a candidate's extensions."""

from __future__ import annotations

import math
import sys
from types import ModuleType

import numpy
import pytest
import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from harness.worker import address_use, extensions
from harness.worker.profiler import OwnCalls


def test_a_function_that_names_an_extensions_module_as_its_own_is_none_of_its_functions(listed, opened):
    extensions.remember(math)

    def model(a, b):
        product = a.numpy().dot
        product.__module__ = math.__name__
        return torch.from_numpy(product(b.numpy()))

    assert listed(model)["own_us"] == 0.0


def test_a_call_of_an_extensions_function_is_its_own_time(listed, opened):
    extensions.remember(math)
    numbers = list(range(100_000))
    found = listed(lambda a, b: math.fsum(numbers) * a)
    assert 0.3 * found["total_us"] < found["own_us"] <= found["total_us"]


def test_functions_of_others_that_an_extensions_module_holds_are_not_its_own(opened):
    module = ModuleType("extension")
    module.of_math, module.of_an_array, module.math = math.sqrt, numpy.ones(2).dot, math
    module.of_an_array.__module__ = module.__name__
    before = dict(opened)
    extensions.remember(module)
    assert opened == before
    extensions.remember(math)
    assert id(math.sqrt) in opened


def withdraw(library: torch.library.Library) -> None:
    """Take its operators back, and their names from `torch.ops` too: Inductor's import looks each listed name up."""
    library._destroy()
    namespace = getattr(torch.ops, library.ns)
    namespace._dir[:] = [name for name in namespace._dir if hasattr(namespace, name)]


@pytest.fixture
def product(opened):
    """`torch.ops.own_calls.product(a, b)`, an operator that came with an extension; NumPy multiplies behind it."""
    before = set(torch._C._dispatch_get_all_op_names())
    library = torch.library.Library("own_calls", "DEF")
    library.define("product(Tensor a, Tensor b) -> Tensor")
    library.impl("product", lambda a, b: torch.from_numpy(numpy.matmul(a.numpy(), b.numpy())), "CPU")
    extensions.remember_operators(before)
    yield torch.ops.own_calls.product
    withdraw(library)


def test_an_operator_is_its_own_only_inside_a_call_of_what_came_with_the_extension(listed, product):
    called = listed(product)
    assert called["own_us"] > 0.5 * called["total_us"]

    def marked(a, b):
        with torch._C._profiler._RecordFunctionFast("own_calls::product"):
            return torch.from_numpy(numpy.matmul(a.numpy(), b.numpy()))

    def noted(a, b):
        with torch.profiler.record_function("own_calls::product"):
            return torch.from_numpy(numpy.matmul(a.numpy(), b.numpy()))

    for model in (marked, noted):
        assert listed(model)["own_us"] == 0.0


def test_what_python_runs_inside_a_call_of_an_extension_is_noticed(listed, product):
    assert listed(product)["called_back"]
    extensions.remember(math)
    assert not listed(lambda a, b: math.fsum([1.0, 2.0]) * a)["called_back"]


def test_an_operator_in_a_namespace_that_was_there_is_none_of_an_extensions(opened):
    before = set(torch._C._dispatch_get_all_op_names())
    library = torch.library.Library("aten", "FRAGMENT")
    library.define("not_an_extensions(Tensor a) -> Tensor")
    extensions.remember_operators(before)
    assert "aten::not_an_extensions" not in extensions.opened_operators
    withdraw(library)


def test_no_mark_of_a_candidates_can_have_the_name_of_an_own_one(monkeypatch):
    import os
    import secrets

    monkeypatch.setattr(secrets, "token_bytes", lambda count: b"x" * count)
    monkeypatch.setattr(os, "urandom", lambda count: b"x" * count)
    assert OwnCalls().name != OwnCalls().name


def test_an_overload_that_comes_with_a_second_extension_is_called_like_the_first(opened):
    opens = torch._C._dispatch_get_all_op_names
    before, library = set(opens()), torch.library.Library("own_calls_twice", "DEF")
    library.define("twice.one(Tensor a) -> Tensor")
    library.impl("twice.one", lambda a: 2 * a, "CPU")
    extensions.remember_operators(before)
    before = set(opens())
    library.define("twice.both(Tensor a, Tensor b) -> Tensor")
    library.impl("twice.both", lambda a, b: 2 * a * b, "CPU")
    extensions.remember_operators(before)
    two = torch.full((1,), 2.0)
    assert torch.ops.own_calls_twice.twice(two) == 4 and torch.ops.own_calls_twice.twice(two, two) == 8
    packet = torch.ops.own_calls_twice.twice
    assert {id(packet._op), id(packet.one._op), id(packet.both._op)} <= opened.keys()
    withdraw(library)


def test_the_call_of_a_model_that_does_nothing_is_no_modules_and_marks_nothing(listed):
    """Whoever hooks into modules would know by it that the next call is watched, and could work for nothing then."""
    seen = []
    handle = register_module_forward_pre_hook(lambda module, arguments: seen.append(type(module).__name__))
    try:
        found = listed(torch.matmul)
    finally:
        handle.remove()
    assert seen == [] and 0 < found["idle_us"] < 1000


def test_a_function_whose_code_lies_in_another_library_is_none_of_an_extensions_whatever_it_says_of_itself(opened):
    module = next(each for name, each in sys.modules.items() if name.endswith("_core._multiarray_umath"))
    before = dict(opened)
    extensions.remember(module, address_use.memory_of(torch._C.__file__))
    assert opened == before
    extensions.remember(module, address_use.memory_of(module.__file__))
    assert id(module.dot) in opened
    assert address_use.memory_of("/no/such/file") == []
