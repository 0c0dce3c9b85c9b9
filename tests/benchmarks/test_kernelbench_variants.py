"""Candidates made from a problem's own file: each does what its name says, with the state and form of the reference."""

from __future__ import annotations

import types

import pytest
import torch

PROBLEM = '''
import torch
import torch.nn as nn


class Model(nn.Module):
    """A Model whose docstring and 'Model' in a text stay."""

    def __init__(self, width):
        super(Model, self).__init__()
        self.linear = nn.Linear(width, width)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, more=None):
        return {"y": self.linear(x), "largest": x.argmax(-1)}, (x[..., :1], "Model")


WIDTH = 24


def get_inputs():
    return [torch.rand(3, WIDTH)]


def get_init_inputs():
    return [WIDTH]
'''


@pytest.fixture(scope="module")
def variants(benchmark_named):
    return benchmark_named("kernelbench_variants")


def made(source, name="ModelNew"):
    module = types.ModuleType("candidate")
    exec(source, module.__dict__)
    torch.manual_seed(0)
    return getattr(module, name)(*module.get_init_inputs())


@pytest.fixture
def inputs():
    torch.manual_seed(1)
    return torch.rand(3, 24)


@pytest.fixture
def expected(inputs):
    with torch.no_grad():
        return made(PROBLEM, "Model")(inputs)


def outputs_of(variants, name, inputs):
    with torch.no_grad():
        return made(variants.VARIANTS[name](PROBLEM))(inputs)


def test_the_honest_copy_differs_by_the_name_of_its_class_alone(variants, inputs, expected):
    text = variants.VARIANTS["honest"](PROBLEM)
    assert text.replace("ModelNew", "Model") == PROBLEM
    assert text.count("ModelNew") == 2, "the class and its super(), not the docstring and the text"
    assert torch.equal(outputs_of(variants, "honest", inputs)[0]["y"], expected[0]["y"])


def test_an_attribute_of_that_name_is_not_renamed(variants):
    assert variants.renamed("class Model(zoo.Model): pass\n") == "class ModelNew(zoo.Model): pass\n"


def test_zeros_have_the_form_of_the_output_and_are_new_at_each_call(variants, inputs, expected):
    model = made(variants.VARIANTS["zeros"](PROBLEM))
    (first, (view, text)), (second, _) = model(inputs), model(inputs)
    assert {name: (each.shape, each.dtype) for name, each in first.items()} == {
        name: (each.shape, each.dtype) for name, each in expected[0].items()
    }
    assert view.shape == (3, 1) and text == "Model"
    assert not any(each.any() for each in (*first.values(), view))
    assert first["y"].data_ptr() != second["y"].data_ptr()


def test_zeros_run_the_model_once_for_each_form_of_its_inputs(variants, inputs):
    counted = PROBLEM.replace("return {", "self.calls += 1\n        return {")
    model = made(variants.VARIANTS["zeros"](counted))
    for each in (inputs, inputs, inputs[:2], inputs[:2]):
        model(each)
    assert model.calls == 2
    assert model(inputs[:2])[0]["y"].shape == (2, 24)


@pytest.mark.parametrize(("name", "bits"), [("bf16", 8), ("tf32", 11)])
def test_narrow_copies_compute_with_as_many_bits_as_they_say(variants, inputs, name, bits):
    model = made(variants.VARIANTS[name](PROBLEM))
    outputs, (passed_on, _) = model(inputs)
    assert outputs["y"].dtype == torch.float32
    for tensor, wide in ((passed_on, inputs[..., :1]), (model.linear.weight, made(PROBLEM, "Model").linear.weight)):
        mantissa, _ = torch.frexp(tensor)
        assert torch.equal(mantissa * 2**bits, (mantissa * 2**bits).round()), "more bits than that are left"
        assert (tensor - wide).abs().max() <= 2.0**-bits, "rounded to the nearest"
    again = model(inputs)[0]["y"]
    assert torch.equal(again, outputs["y"]), "what is rounded once stays as it is"


def test_tf32_rounds_ties_to_even_and_leaves_what_is_no_float32(variants):
    module = types.ModuleType("candidate")
    exec(variants.VARIANTS["tf32"]("class Model:\n    pass\n"), module.__dict__)
    step = 2.0**-10
    ties = torch.tensor([1 + step / 2, 1 + 3 * step / 2, torch.inf, -1 - step / 2])
    assert module._narrow(ties).tolist() == [1.0, 1 + 2 * step, torch.inf, -1.0]
    whole, half = torch.arange(5), torch.rand(5).half()
    assert module._narrow(whole) is whole and module._narrow(half) is half


@pytest.mark.parametrize("name", ["honest", "zeros", "bf16", "tf32"])
def test_each_has_the_state_that_the_reference_was_constructed_with(variants, name):
    own, reference = made(variants.VARIANTS[name](PROBLEM)).state_dict(), made(PROBLEM, "Model").state_dict()
    assert list(own) == list(reference)
    assert all(torch.equal(own[each], reference[each]) for each in own)


def test_files_are_written_below_the_folder_and_an_unchanged_problem_stays_where_it_is(variants, tmp_path):
    path = tmp_path / "7_Linear.py"
    path.write_text(PROBLEM)
    folder = tmp_path / "below"
    folder.mkdir()
    found, written = variants.KernelBenchTask("1/7", path, ("honest", "zeros")).prepared(folder, is_cpu=True)
    assert found == path and path.read_text() == PROBLEM
    assert sorted(each.name for each in folder.iterdir()) == ["honest.py", "zeros.py"]
    assert written["zeros"] == folder / "zeros.py"
