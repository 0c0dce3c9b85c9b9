"""How large a call will be, before anything of it is drawn."""

from __future__ import annotations

import pytest
import torch

from harness.model.errors import NoRoom
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
