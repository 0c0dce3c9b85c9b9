"""What `new` and `new-problem` write is sound as it stands, and nothing is written over."""

from __future__ import annotations

import ast
import json
import types
from pathlib import Path

import pytest
from shipped import shipped

from harness.cli import main
from harness.model.candidate import read_candidate
from harness.model.errors import InputError
from harness.model.paths import REPOSITORY
from harness.model.problem import load_problem
from harness.model.scaffold import from_reference, new_candidate, new_problem

FIXTURES = REPOSITORY / "tests" / "fixtures" / "kernelbench"
SHIPPED = shipped("problems/*.yaml")
TRIL = REPOSITORY / "problems" / "tril_matmul.yaml"
RUNGS = shipped("candidates/*/*.py")


def run_module(source: str) -> types.ModuleType:
    module = types.ModuleType("module_under_test")
    exec(compile(source, "<scaffold>", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize(
    "path", [*SHIPPED, FIXTURES / "linear_relu.py", FIXTURES / "two_outputs.py"], ids=lambda path: path.stem
)
def test_a_candidate_of_any_problem_computes_what_the_reference_does(path, tmp_path):
    import torch

    problem = load_problem(path, tmp_path)
    written = new_candidate(problem, "mine")
    assert read_candidate(written).fault is None
    reference, candidate = run_module(problem.reference_source), run_module(written.read_text())
    for name in problem.sizes:
        setattr(reference, name, 16)
    assert not {"get_inputs", "Model", *problem.sizes} & set(vars(candidate))
    init, inputs = getattr(reference, "get_init_inputs", list)(), reference.get_inputs()
    torch.manual_seed(0)
    expected = reference.Model(*init)(*inputs)
    torch.manual_seed(0)
    got = candidate.ModelNew(*init)(*inputs)
    pairs = zip(got, expected) if isinstance(got, tuple) else [(got, expected)]
    assert all(torch.equal(one, other) for one, other in pairs)


def test_sizes_that_the_model_reads_stay_and_those_it_takes_as_arguments_go():
    source = (
        '"""Old words."""\nimport torch\nK = 3\nSCALE = 2 * K\nN = 5\nfeatures = 4\n\n\n'
        "def double(x):\n    return SCALE * x\n\n\n"
        "class Model(torch.nn.Module):\n    def __init__(self, features):\n        super(Model, self).__init__()\n"
        "        self.features = features\n\n    def forward(self, x):\n        return double(x)\n\n\n"
        "def get_inputs():\n    return [torch.rand(N)]\n\n\ndef get_init_inputs():\n    return [features]\n"
    )
    made = from_reference(source, "mine")
    names = {node.targets[0].id for node in ast.parse(made).body if isinstance(node, ast.Assign)}
    assert names == {"K", "SCALE"}
    assert "super(ModelNew, self)" in made
    assert "Old words" not in made
    assert run_module(made).ModelNew(4).features == 4


@pytest.mark.parametrize("rung", RUNGS, ids=lambda path: "/".join(path.parts[-2:]))
def test_a_copy_of_a_rung_is_that_rung_but_for_its_header_and_its_extension_s_name(rung, tmp_path):
    problem = load_problem(REPOSITORY / "problems" / f"{rung.parent.name}.yaml", tmp_path)
    copied = new_candidate(problem, "mine-2", rung.stem).read_text()
    assert copied.startswith(f'"""mine-2: begun as a copy of {rung.stem};')
    assert read_candidate(tmp_path / "mine-2.py").fault is None
    theirs = rung.read_text()
    assert ast.get_docstring(ast.parse(theirs)) in ast.get_docstring(ast.parse(copied))
    changed = [line for line in copied.splitlines() if line not in theirs.splitlines()]
    assert len(changed) <= 3
    if "load_inline" in theirs:
        assert f'name="{problem.name}_mine_2"' in copied


def test_nothing_is_written_over(tmp_path):
    problem = load_problem(TRIL, tmp_path)
    path = new_candidate(problem, "mine")
    path.write_text("precious")
    with pytest.raises(InputError, match="is there already"):
        new_candidate(problem, "mine.py")
    assert path.read_text() == "precious"
    (tmp_path / "soft.py").write_text("precious")
    with pytest.raises(InputError, match="is there already"):
        new_problem("soft", tmp_path)
    assert not (tmp_path / "soft.yaml").exists()


@pytest.mark.parametrize("name", ["../up", "a b", "", ".hidden", "_private", "sub/dir"])
def test_a_name_that_would_lie_elsewhere_or_be_passed_over_is_refused(name, tmp_path):
    with pytest.raises(InputError, match="no name for a file"):
        new_candidate(load_problem(TRIL, tmp_path), name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["eager", "Eager", "NaN"])
def test_a_name_that_every_run_would_refuse_is_refused_before_a_file_is_written(name, tmp_path):
    with pytest.raises(InputError, match=f"'{name}' is no name for a candidate: "):
        new_candidate(load_problem(TRIL, tmp_path), name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "meant"), [("3x", "problem_3x"), ("row-softmax", "row_softmax")])
def test_a_problem_is_named_as_python_names_things_and_told_how(name, meant, tmp_path):
    with pytest.raises(InputError, match=f"Type {meant}$"):
        new_problem(name, tmp_path)
    assert meant.isidentifier()


def test_a_rung_that_is_not_there_is_told_with_the_nearest(tmp_path):
    with pytest.raises(InputError, match="Did you mean 'naive_per_element'"):
        new_candidate(load_problem(TRIL, tmp_path), "mine", "naive_per_elment")


def test_a_new_problem_loads_and_its_reference_runs_at_every_size(tmp_path):
    import torch

    yaml_path, _ = new_problem("row_softmax", tmp_path)
    problem = load_problem(yaml_path, tmp_path)
    assert problem.bytes.evaluate(problem.sizes) == 8 * 8192 * 4096
    module = run_module(problem.reference_source)
    for sizes in (problem.cpu_sizes, *problem.check_sizes):
        vars(module).update(sizes)
        assert torch.isfinite(module.Model()(*module.get_inputs())).all()


def test_the_verbs_say_what_to_type_next_and_give_it_as_json(tmp_path, capsys):
    assert main(["new", "tril_matmul", "mine", "--candidates", str(tmp_path)]) == 0
    assert (tmp_path / "tril_matmul" / "mine.py").exists()
    assert f"python run.py problems/tril_matmul.yaml --candidates {tmp_path} --only mine" in capsys.readouterr().out
    assert main(["new-problem", "soft", "--problems", str(tmp_path), "--json"]) == 0
    assert Path(json.loads(capsys.readouterr().out)["path"]) == tmp_path / "soft.yaml"
    assert main(["new", "tril_matmull", "mine"]) == 2
    assert "Did you mean 'tril_matmul'?" in capsys.readouterr().err
