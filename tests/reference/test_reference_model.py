"""The reference at given sizes: what it is run on, and what is said when it cannot be run."""

from __future__ import annotations

import re

import pytest
import torch

from harness.model.errors import InputError
from harness.model.problem import AccuracyRule
from harness.reference.inputs.families import PRODUCT_FAMILIES
from harness.reference.reference_model import Reference, be_strict

PRODUCT = """
import torch
M = 16
N = M // 2


class Model(torch.nn.Module):
    def forward(self, A, B):
        return {result}


def get_inputs():
    return {inputs}
"""


def product(result="torch.matmul(A, B)", inputs="[torch.rand(M, N), torch.rand(N, M)]"):
    return PRODUCT.format(result=result, inputs=inputs)


def test_sizes_replace_those_of_the_file_and_what_is_computed_from_them_follows(reference_of):
    reference = reference_of(product(), {"M": 10})
    assert [spec.shape for spec in reference.specs] == [(10, 5), (5, 10)]
    assert [spec.shape for spec in reference.output_specs] == [(10, 10)]


def test_without_sizes_the_files_own_hold(reference_of):
    assert reference_of(product(), {}).specs[0].shape == (16, 8)


def test_a_reference_of_complex_numbers_is_refused_in_a_sentence(reference_of):
    with pytest.raises(InputError, match=r"returns complex numbers, .* no accuracy rule\. Return torch\.view_as_real"):
        reference_of(product("torch.matmul(A, B).to(torch.complex64)"))


def test_a_random_reference_is_refused(reference_of):
    with pytest.raises(InputError, match="is random"):
        reference_of(product("torch.nn.functional.dropout(torch.matmul(A, B))"))


def test_a_reference_that_writes_to_its_inputs_is_refused(reference_of):
    with pytest.raises(InputError, match="writes to its own inputs"):
        reference_of(product("A.mul_(0.5)"))


def test_eagers_outputs_of_two_calls_share_no_memory(reference_of):
    kept = product("self.kept.copy_(torch.matmul(A, B))").replace(
        "    def forward", "    def __init__(self):\n        super().__init__()\n        self.kept = torch.empty(16, 16)\n\n    def forward"
    )
    reference = reference_of(kept)
    inputs = reference.draw()
    first = reference.eager(inputs)[0]
    expected = first.clone()
    reference.eager(reference.draw())
    assert torch.equal(first, expected)


def test_models_made_under_one_seed_have_the_same_parameters(problem_of):
    from harness.reference.reference_model import Reference

    source = (
        "import torch\nsize = 4\n\n\nclass Model(torch.nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n"
        "        self.linear = torch.nn.Linear(width, width)\n\n"
        "    def forward(self, x):\n        return self.linear(x)\n\n\n"
        "def get_inputs():\n    return [torch.rand(2, size)]\n\n\ndef get_init_inputs():\n    return [size]\n"
    )
    problem = problem_of(source, accuracy=AccuracyRule())
    first, second = (Reference(problem, {"size": 6}, torch.device("cpu"), seed=9) for _ in range(2))
    assert first.init == [6]
    assert torch.equal(first.model.linear.weight, second.model.linear.weight)


def test_the_number_of_terms_follows_the_sizes(reference_of):
    assert reference_of(product(), {"M": 12}).terms == 12
    assert reference_of(product(), accuracy=AccuracyRule()).terms is None


def test_strict_means_no_tf32_even_when_the_reference_asks_for_it(reference_of):
    reference_of("import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n" + product())
    assert torch.backends.cuda.matmul.allow_tf32 is False
    be_strict()
    assert torch.backends.cudnn.allow_tf32 is False


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (product(inputs="[torch.rand(M, nothing)]"), "NameError"),
        (product(inputs="None"), "TypeError"),
        (product("A @ A"), "cannot run on its own inputs: RuntimeError"),
        ("import no_such_module\n" + product(), "ModuleNotFoundError"),
        (product().replace("def forward", "def __init__(self):\n        raise ValueError('never')\n\n    def forward"),
         "cannot be constructed: ValueError: never"),
        (product().replace("def forward", "def __init__(self, scale):\n        super().__init__()\n\n    def forward"),
         r"'scale'\. The reference has no get_init_inputs\(\): write one"),
        (product("[object()]"), "object cannot cross|cannot run on its own inputs"),
        (product("None if A.sum() > 1e9 else {1: A}"), "dict"),
    ],
    ids=["get_inputs raises", "get_inputs gives None", "shapes do not fit", "a module is missing", "__init__ raises", "its arguments are missing",
         "an object comes out", "a dict with numbers as keys comes out"],
)
def test_a_reference_that_cannot_be_run_is_the_users_error_with_its_file(reference_of, source, said):
    with pytest.raises(InputError, match=said) as caught:
        reference_of(source)
    assert re.search(r"reference_under_test\.py|get_inputs\(\)", str(caught.value))
    assert "\n" not in str(caught.value)


def test_the_error_of_get_inputs_names_the_file_too(reference_of):
    with pytest.raises(InputError) as caught:
        reference_of(product(inputs="[1 / 0]"))
    assert caught.value.path is not None


def test_with_gradients_two_draws_have_different_vectors(reference_of):
    reference = reference_of(product(), mode="forward_backward")
    first, second = (reference.draw().arguments()[1][0] for _ in range(2))
    assert not torch.equal(first, second)


def test_with_gradients_no_family_counts_as_exact_and_no_layout_of_a_gradient_is_asked_for(reference_of):
    rule = AccuracyRule(scale="abs_inputs", contracted=(1, 0))
    reference = reference_of(product(), mode="forward_backward", accuracy=rule)
    assert [family.name for family in reference.families] == ["as given", "signs", "spread"]
    assert len(reference_of(product(), accuracy=rule).families) == len(PRODUCT_FAMILIES)
    assert reference.output_strides == [[16, 1], None, None]


def test_of_an_output_that_is_computed_when_it_is_read_no_layout_is_asked(reference_of):
    assert reference_of(product("torch._neg_view(torch.matmul(A, B))")).output_strides == [None]
    assert reference_of(product()).output_strides == [[16, 1]]


def test_a_reference_without_a_floating_output_has_no_gradients_to_ask_for(reference_of):
    with pytest.raises(InputError, match="no output of the reference has a gradient"):
        reference_of(product("(A @ B > 1).int()"), mode="forward_backward")


def contracted_fault(problem_of, tmp_path, contracted, inputs="[torch.rand(M, N), torch.rand(N, M)]"):
    """What is said of a problem whose YAML has that `contracted` on its third line."""
    yaml = tmp_path / "p.yaml"
    yaml.write_text(f"title: p\nreference: p.py\naccuracy: {{contracted: {list(contracted)}}}\n")
    problem = problem_of(product("A @ A.T", inputs), path=yaml, accuracy=AccuracyRule(contracted=contracted))
    with pytest.raises(InputError) as refused:
        Reference(problem, {}, torch.device("cpu"), seed=1)
    return str(refused.value).replace(str(yaml), "p.yaml")


def test_an_axis_that_no_input_has_is_told_with_its_line(problem_of, tmp_path):
    said = contracted_fault(problem_of, tmp_path, (1, 9))
    assert said.startswith("p.yaml:3: accuracy.contracted[1] is 9, and input 2 has 2 axes, counted from 0 ([8, 16]). Name")


def test_an_axis_too_many_is_told_with_its_line(problem_of, tmp_path):
    said = contracted_fault(problem_of, tmp_path, (1, 0), "[torch.rand(M, N), torch.arange(N)]")
    assert said.startswith("p.yaml:3: accuracy.contracted names 2 axes, and the reference has 1 floating-point input ([16, 8])")


def test_contracted_axes_of_what_is_no_matrix_are_refused(problem_of, tmp_path):
    said = contracted_fault(problem_of, tmp_path, (1, 0), "[torch.rand(M, N), torch.rand(2, N, M)]")
    assert said.startswith("p.yaml:3: accuracy.contracted is for products of matrices, and an input has the shape [2, 8, 16]")
