"""A problem at sizes that were asked for: one, several, and those that it cannot be timed at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model.errors import InputError
from harness.model.files.reference_source import sizes_in, with_sizes
from harness.model.formulas import Formula
from harness.model.paths import REPOSITORY
from harness.model.problem import PROBLEMS_DIR, at_sizes, load_problem


def test_sizes_that_were_asked_for_count_on_every_device_and_several_are_several_problems():
    problem = load_problem(PROBLEMS_DIR / "tril_matmul.yaml")
    assert at_sizes(problem, []) is problem and problem.each_size() == (problem,)
    chosen = at_sizes(problem, ["M=1024", "M=256"])
    assert chosen.timed_sizes("cuda") == chosen.timed_sizes("cpu") == {"M": 1024}
    assert [each.timed_sizes("cuda") for each in chosen.each_size()] == [{"M": 1024}, {"M": 256}]
    assert [each.timed_sizes("cpu") for each in chosen.each_size()] == [{"M": 1024}, {"M": 256}]
    assert {each.hash for each in chosen.each_size()} == {problem.hash}
    assert all(each.each_size() == (each,) for each in chosen.each_size())


def test_sizes_at_which_a_formula_has_no_sense_are_refused(files):
    sinking = replace(files.load(), flops=Formula("M-100"))
    with pytest.raises(InputError, match=r"--sizes M=64,K=8,N=4: the formula 'M-100' is not positive there"):
        at_sizes(sinking, ["M=64"])


def test_a_kernelbench_file_is_timed_at_other_values_of_the_names_it_gives_to_whole_numbers():
    alone = load_problem(REPOSITORY / "tests/fixtures/kernelbench/linear_relu.py")
    name, own = next(iter(sizes_in(alone.reference_source).items()))
    chosen = at_sizes(alone, [f"{name}={own + 1}", f"{name}={own + 2}"])
    assert [each.timed_sizes("cpu") for each in chosen.each_size()] == [{name: own + 1}, {name: own + 2}]
    assert chosen.timed_sizes("cuda") == {name: own + 1}, "those that nobody named are as the file has them"
    with pytest.raises(InputError, match=f"'no_such' is no size of this problem.*{name}"):
        at_sizes(alone, ["no_such=64"])


def test_a_file_without_a_whole_number_of_its_own_has_no_other_sizes(tmp_path):
    path = tmp_path / "fixed.py"
    path.write_text(
        "import torch\nRATE = 0.5\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n\n\n"
        "def get_inputs():\n    return [torch.rand(4)]\n"
    )
    with pytest.raises(InputError, match="gives no whole number a name .* or leave --sizes out"):
        at_sizes(load_problem(path), ["M=64"])


MANY_FORMS = """
A = B = 16
M, N = 8, 2 * A
K: int = 2**5
rest = M * 2
RATE, TRUTH, BELOW = 1.5, True, -1
L = [1, 2]
L[0] = 3
"""


def test_sizes_are_whole_numbers_in_whatever_form_of_assignment_they_stand():
    assert sizes_in(MANY_FORMS) == {"A": 16, "B": 16, "M": 8, "N": 32, "K": 32, "rest": 16}
    assert sizes_in("A = 3\nA = 'three'\nB = 1 // 0\nC = 2**1000\n") == {}


@pytest.mark.parametrize("sizes", [{"A": 3}, {"B": 5, "A": 4}, {"M": 7, "K": 9}, {"N": 1}])
def test_what_a_file_computes_from_its_sizes_follows_those_that_were_asked_for(sizes):
    names: dict = {}
    exec(compile(with_sizes(MANY_FORMS, sizes), "file", "exec"), names)
    own = {"A": 16, "B": 16, "M": 8, "N": 2 * sizes.get("A", 16), "K": 32} | sizes
    assert {name: names[name] for name in own} == own
    assert names["rest"] == 2 * own["M"]
