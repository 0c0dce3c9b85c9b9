"""Which calls are those of a candidate's extensions."""

from __future__ import annotations

import math
from types import ModuleType

import numpy
import torch

from harness.player import extensions


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
