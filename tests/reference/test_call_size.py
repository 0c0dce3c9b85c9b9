"""How large a call will be, before anything of it is drawn."""

from __future__ import annotations

import pytest
import torch

from harness.model.errors import NoRoom
from harness.model.problem import AccuracyRule
from harness.reference.call_size import foreseen


class Product(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width, 8)

    def forward(self, x):
        return self.layer(x)


def called(model, arguments):
    return model(*arguments)


def test_terabytes_are_foreseen_without_a_byte_of_them():
    call = foreseen(lambda: [torch.rand(1 << 38, 16)], lambda: Product(16), called)
    assert call.inputs_bytes == (1 << 38) * 16 * 4
    assert call.outputs_bytes == (1 << 38) * 8 * 4
    assert call.wide_inputs_bytes == 2 * call.inputs_bytes
    assert call.state_bytes == (16 + 1) * 8 * 4


def test_a_model_that_looks_at_values_leaves_its_outputs_unknown():
    class Peeks(torch.nn.Module):
        def forward(self, x):
            return x if float(x.sum()) > 0 else -x

    assert foreseen(lambda: [torch.rand(1 << 20)], Peeks, called).outputs_bytes == 0


def test_inputs_that_must_be_computed_are_not_foreseen():
    assert foreseen(lambda: [torch.rand(8)[torch.rand(8) > 0.5].tolist()], lambda: Product(8), called) is None


def test_on_a_cpu_what_cannot_fit_is_refused_in_words_before_it_is_drawn(problem_of):
    from harness.reference.reference_model import Reference

    source = """
import torch
N = 1 << 36


class Model(torch.nn.Module):
    def forward(self, x):
        return x.relu()


def get_inputs():
    return [torch.rand(N)]
"""
    with pytest.raises(NoRoom, match=r"274\.9 GB of inputs, 274\.9 GB of outputs.*22\.0 GB that are free.*--sizes"):
        Reference(problem_of(source), {}, torch.device("cpu"), 1, available_bytes=22 * 10**9)


def test_so_is_a_model_whose_parameters_cannot_fit(problem_of):
    from harness.reference.reference_model import Reference

    source = """
import torch
N = 1 << 18


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(N, N)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.rand(2, N)]
"""
    with pytest.raises(NoRoom, match=r"274\.9 GB of parameters and buffers, .*22\.0 GB that are free"):
        Reference(problem_of(source), {}, torch.device("cpu"), 1, available_bytes=22 * 10**9)


def test_a_state_that_is_no_tensor_hides_no_outputs():
    class Counts(Product):
        def get_extra_state(self):
            return {"calls": 0}

        def set_extra_state(self, state):
            pass

    assert foreseen(lambda: [torch.rand(4, 16)], lambda: Counts(16), called).outputs_bytes > 0


def test_to_foresee_a_call_draws_nothing_from_the_file_s_own_numbers_and_keeps_nothing_of_its_lists(problem_of):
    from harness.reference.reference_model import Reference

    source = """
import numpy
import torch

numpy.random.seed(0)


class Model(torch.nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.as_tensor(numpy.random.randn(sizes.pop())))

    def forward(self, x):
        return x * self.weight.float()


def get_inputs():
    return [torch.rand(4, 3)]


def get_init_inputs():
    return [[1, 2, 3]]
"""
    numpy = pytest.importorskip("numpy")
    reference = Reference(problem_of(source, accuracy=AccuracyRule()), {}, torch.device("cpu"), 1)
    numpy.random.seed(0)
    assert torch.equal(reference.state["weight"], torch.as_tensor(numpy.random.randn(3)))
