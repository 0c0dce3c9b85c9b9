"""Task folders read as problems, and their submissions as candidates."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch

from harness.model.candidate import find_candidates, read_candidate
from harness.model.errors import InputError
from harness.model.files.reference_source import with_sizes
from harness.model.problem import load_problem

RIGHT = "from task import input_t\n\ndef custom_kernel(data: input_t):\n    x, output = data\n    return output.copy_(2 * x)\n"


def module_of(problem, **sizes: int) -> ModuleType:
    module = ModuleType("reference")
    exec(compile(with_sizes(problem.reference_source, sizes), "reference", "exec"), module.__dict__)
    return module


def test_the_largest_benchmark_is_timed_and_tests_are_checks_too(task):
    problem = load_problem(task.write())
    assert (problem.name, problem.title, problem.sizes) == ("doubled", "Doubles a matrix.", {"size": 64})
    assert problem.check_sizes == ({"size": 16}, {"size": 5})


def test_a_test_larger_than_any_benchmark_is_not_timed(task):
    task.yaml = task.yaml.replace('"size": 5', '"size": 500')
    assert load_problem(task.write()).sizes == {"size": 64}


def test_benchmarks_that_differ_in_words_alone_go_by_their_number(task):
    task.yaml = task.yaml.replace('"size": 16', '"size": 64, "kind": "b"')
    problem = load_problem(task.write())
    assert (problem.sizes, problem.check_sizes) == ({"case": 1}, ({"case": 2}, {"case": 3}))


def test_every_draw_has_a_seed_of_its_own_and_outputs_are_described(task):
    module = module_of(load_problem(task.write()), size=3)
    [(x, output)] = module.get_inputs()
    assert x.shape == (3, 3) and output == {"empty": [3, 3], "dtype": "float32"}
    assert not torch.equal(x, module.get_inputs()[0][0])
    assert torch.equal(module.Model()((x, output)), 2 * x)
    wide = module.Model()((x.double(), output))
    assert wide.dtype == torch.float64, "the truth is not rounded to the type of the output"


@pytest.mark.parametrize(("body", "says"), [
    ("    x, output = data\n    x *= 2\n    return x\n", r"ref_kernel changes data\[0\] in place, which cannot be judged"),
    ("    data[0].add_(1)\n    return data[1].copy_(data[0])\n", "ref_kernel writes to its inputs, which cannot be judged"),
])
def test_a_reference_that_changes_its_inputs_is_refused_in_words(task, body, says):
    task.reference = task.reference.partition("def ref_kernel")[0] + "def ref_kernel(data):\n" + body
    with pytest.raises(ValueError, match=says):
        module_of(load_problem(task.write())).get_inputs()


def test_submissions_lie_beside_the_task_or_in_a_folder_that_is_named(task, tmp_path):
    path = task.write()
    for name in ("submission", "submission_two", "template"):
        task.submission(name, RIGHT)
    problem = load_problem(path)
    found = find_candidates(problem.candidate_folders, form=problem.form)
    assert [each.name for each in found] == ["submission", "submission_two"]
    elsewhere = tmp_path / "mine"
    elsewhere.mkdir()
    (elsewhere / "anything.py").write_text(RIGHT)
    problem = load_problem(path, elsewhere)
    assert [each.name for each in find_candidates(problem.candidate_folders, form=problem.form)] == ["anything"]


def test_the_lines_of_a_submission_are_the_candidates_first_and_what_it_imports_lies_beside(task, tmp_path):
    form = load_problem(task.write()).form
    candidate = read_candidate(task.submission("submission", RIGHT), form=form)
    assert candidate.fault is None and candidate.source.startswith(RIGHT)
    beside = {each.name for each in candidate.file_in(tmp_path).parent.iterdir()}
    (task.folder / "task.py").write_text("input_t = list\n")
    other = read_candidate(task.folder / "submission.py", form=load_problem(task.folder / "task.yml").form)
    assert candidate.source == other.source and candidate.source_hash != other.source_hash
    assert beside == {"submission.py", "task.py", "utils.py", "reference.py"}


def test_a_submission_without_custom_kernel_has_a_fault_in_words(task):
    form = load_problem(task.write()).form
    fault = read_candidate(task.submission("submission", "def kernel(data):\n    return data\n"), form=form).fault
    assert fault == "submission.py: defines no function custom_kernel. Write def custom_kernel(…): in it"


REFUSED = {
    "one GPU": (("lang: ", "multi_gpu: true\nlang: "), "task.yml:7: is a task for several GPUs, which cannot be judged"),
    "Python": (('lang: "py"', "lang: cu"), "task.yml:7: lang is 'cu', and only Python tasks can be judged"),
    "a file": (("../utils.py", "../others.py"), "task.yml:4: ../others.py: no such file"),
    "a reference": (('"name": "reference.py"', '"name": "another.py"'), "task.yml:1: 'files' has no reference.py"),
    "benchmarks": (("benchmarks:", "unknown:"), "'benchmarks' is empty, so there is nothing to time"),
    "a mapping": (('- {"size": 5, "seed": 1}', "- 5"), "task.yml:13: 'tests' has 5"),
    "YAML": (("tests:", "tests: ["), "task.yml:"),
}


@pytest.mark.parametrize("lacking", REFUSED)
def test_a_task_that_lacks_something_is_refused_in_words(task, lacking):
    (old, new), says = REFUSED[lacking]
    assert old in task.yaml
    task.yaml = task.yaml.replace(old, new)
    with pytest.raises(InputError) as caught:
        load_problem(task.write())
    assert says in str(caught.value)


def test_a_reference_without_its_functions_is_refused_with_its_file(task):
    task.reference = "def ref_kernel(data):\n    return data\n"
    with pytest.raises(InputError, match="reference.py: defines no function generate_input"):
        load_problem(task.write())
