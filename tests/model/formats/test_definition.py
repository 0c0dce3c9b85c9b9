"""Definitions with their workloads read as problems, and refused in words."""

from __future__ import annotations

import json
from types import ModuleType

import pytest
import torch

from harness.model.candidate import find_candidates
from harness.model.errors import InputError
from harness.model.files.reference_source import with_sizes
from harness.model.problem import find_problem, load_problem


def module_of(problem, **sizes: int) -> ModuleType:
    module = ModuleType("reference")
    exec(compile(with_sizes(problem.reference_source, sizes), "reference", "exec"), module.__dict__)
    return module


def test_the_largest_workload_is_timed_and_the_others_are_checks(traced):
    problem = load_problem(traced.write())
    assert (problem.name, problem.sizes, problem.dtype) == ("added_rows", {"M": 40}, "float32")
    assert problem.check_sizes == ({"M": 3}, {"M": 17})


def test_a_folder_with_a_definition_is_its_problem(traced):
    path = traced.write()
    assert find_problem(traced.folder) == path


def test_workloads_of_the_same_axes_go_by_their_number(traced):
    traced.workloads = [{**traced.workloads[0], "uuid": "x"}, *traced.workloads]
    assert load_problem(traced.write()).sizes == {"M": 40}, "one that is there twice is one"
    changed = json.loads(json.dumps(traced.workloads[1]))
    changed["inputs"]["factor"]["value"] = 7.0
    traced.workloads = [traced.workloads[1], changed]
    problem = load_problem(traced.write())
    assert (problem.sizes, problem.check_sizes) == ({"case": 1}, ({"case": 2},))
    assert module_of(problem, case=2).get_inputs()[2] == 7.0
    with pytest.raises(ValueError, match=r"there is no case 3, only \[1, 2\]"):
        module_of(problem, case=3).get_inputs()


def test_inputs_are_drawn_anew_and_outputs_are_described_after_them(traced):
    module = module_of(load_problem(traced.write()), M=5)
    a, b, factor, both, total = module.get_inputs()
    assert (a.shape, b.shape, factor) == ((5, 64), (64,), 2.0)
    assert both == {"empty": [5, 128], "dtype": "float32"} and total == {"empty": [5], "dtype": "float32"}
    assert not torch.equal(a, module.get_inputs()[0])
    made, sums = module.Model()(a, b, factor, both, total)
    assert torch.equal(made, torch.cat([a + b, a * 2], dim=1)) and torch.equal(sums, a.sum(dim=1))


@pytest.mark.parametrize(("dtype", "least", "most"), [
    ("int8", -128, 127), ("int64", -1024, 1023), ("bool", 0, 1), ("float8_e4m3fn", -2, 2), ("bfloat16", -8, 8),
])
def test_each_type_of_number_is_drawn_in_its_range(traced, dtype, least, most):
    traced.values["inputs"]["b"]["dtype"] = dtype
    drawn = module_of(load_problem(traced.write())).get_inputs()[1]
    assert str(drawn.dtype) == f"torch.{dtype}"
    assert least <= drawn.float().min() and drawn.float().max() <= most and drawn.float().std() > 0.1


def test_an_input_of_a_safetensors_file_is_what_the_file_holds(traced):
    kept = torch.arange(64, dtype=torch.float32)
    header = json.dumps({"rows": {"dtype": "F32", "shape": [64], "data_offsets": [8, 264]}}).encode()
    content = len(header).to_bytes(8, "little") + header + bytes(8) + kept.numpy().tobytes()
    (traced.folder / "blob").mkdir()
    (traced.folder / "blob" / "b.safetensors").write_bytes(content)
    stored = {"type": "safetensors", "path": "blob/b.safetensors", "tensor_key": "rows"}
    traced.workloads[0]["inputs"]["b"] = stored
    module = module_of(load_problem(traced.write()), M=3)
    assert torch.equal(module.get_inputs()[1], kept)
    stored["tensor_key"] = "columns"
    with pytest.raises(ValueError, match="has no tensor 'columns' for the input 'b'"):
        module_of(load_problem(traced.write()), M=3).get_inputs()


def test_custom_inputs_come_from_the_function_that_the_definition_names(traced):
    traced.values["reference"] += "\ndef made(sizes, device):\n" \
        "    return {'a': torch.full((sizes['M'], sizes['N']), 3.0), 'b': torch.zeros(sizes['N']), 'factor': 0.25}\n"
    traced.values["custom_inputs_entrypoint"] = "made"
    traced.workloads = [{"uuid": "1", "axes": {"M": 6}, "inputs": dict.fromkeys(("a", "b", "factor"), {"type": "custom"})}]
    a, b, factor, *_ = module_of(load_problem(traced.write())).get_inputs()
    assert (a.shape, float(a[0, 0]), float(b[0]), factor) == ((6, 64), 3.0, 0.0, 0.25)


def test_in_a_trace_set_workloads_and_solutions_lie_in_folders_of_their_own(traced):
    root = traced.folder
    solution = traced.solution("right", "def run(a, b, factor, both, total):\n    pass\n")
    traced.solution("others", "def run(x):\n    pass\n")
    other = json.loads((root / "others.json").read_text())
    for path in ("definitions/op", "workloads/op", "solutions/me/op/added_rows"):
        (root / path).mkdir(parents=True)
    path = traced.write().rename(root / "definitions/op/added_rows.json")
    (root / "workload.jsonl").unlink()
    traces = [{"definition": "added_rows", "workload": each, "solution": None} for each in traced.workloads]
    (root / "workloads/op/added_rows.jsonl").write_text("\n".join(map(json.dumps, traces)))
    solution.rename(root / "solutions/me/op/added_rows/right.json")
    (root / "others.json").unlink()
    (root / "solutions/me/op/added_rows/others.json").write_text(json.dumps({**other, "definition": "added_rows_too"}))
    problem = load_problem(path)
    assert problem.sizes == {"M": 40}
    found = find_candidates(problem.candidate_folders, form=problem.form)
    assert [(each.name, each.fault) for each in found] == [("right", None)]


def _without(values, *keys):
    for key in keys[:-1]:
        values = values[key]
    del values[keys[-1]]


REFUSED = {
    "a name": (lambda d, w: _without(d, "name"), "definition.json: there is no 'name'"),
    "a folder's name": (lambda d, w: d.update(name="../up"), "is to be the name of a folder of results"),
    "axes": (lambda d, w: d.update(axes=[]), "'axes' must be an object, not []"),
    "an axis": (lambda d, w: d["axes"].update(M={"type": "free"}), "'axes.M.type' is 'free'. It is const, var or expr"),
    "a value": (lambda d, w: _without(d, "axes", "N", "value"), "there is no 'axes.N.value'"),
    "arithmetic": (lambda d, w: d["axes"].update(twice={"type": "expr", "expression": "open('x')"}), "is no arithmetic"),
    "a dtype": (lambda d, w: d["inputs"]["a"].update(dtype="float4_e2m1"), "'inputs.a' is float4_e2m1, which cannot be"),
    "a shape": (lambda d, w: d["inputs"]["a"].update(shape=["M", "L"]), "names the axis 'L', which 'axes' has not"),
    "outputs": (lambda d, w: d.update(outputs={}), "'outputs' names none"),
    "run": (lambda d, w: d.update(reference="def walk(): pass"), "'reference' defines no function run"),
    "Python": (lambda d, w: d.update(reference="import torch\ndef run(:"), "line 2 of 'reference': Python cannot read"),
    "a workload": (lambda d, w: w.clear(), "workload.jsonl: has no workload"),
    "JSON": (lambda d, w: w.append("{"), "workload.jsonl:4: is no JSON"),
    "an axis's value": (lambda d, w: w[1]["axes"].clear(), "workload.jsonl:2: there is no 'axes.M'"),
    "an input's kind": (lambda d, w: w[0]["inputs"].update(a={"type": "zeros"}), "workload.jsonl:1: 'inputs.a' is"),
    "an input": (lambda d, w: w[0]["inputs"].update(c={"type": "random"}), "'inputs.c' is no input of the definition"),
    "a custom input": (lambda d, w: w[0]["inputs"].update(a={"type": "custom"}), "names no custom_inputs_entrypoint"),
    "a file": (
        lambda d, w: w[2]["inputs"].update(b={"type": "safetensors", "path": "blob/b.safetensors", "tensor_key": "b"}),
        "workload.jsonl:3: the input 'b' is kept in blob/b.safetensors, which is not there. Fetch that file",
    ),
    "its own workload": (lambda d, w: w.append({"definition": "y", "workload": {}}), ":4: is a workload of 'y'"),
}


@pytest.mark.parametrize("lacking", REFUSED)
def test_a_definition_or_workload_that_lacks_something_is_refused_in_words(traced, lacking):
    spoil, says = REFUSED[lacking]
    spoil(traced.values, traced.workloads)
    with pytest.raises(InputError) as caught:
        load_problem(traced.write())
    assert says in str(caught.value)


def test_a_definition_without_workloads_says_where_to_put_them(traced):
    path = traced.write()
    (traced.folder / "workload.jsonl").unlink()
    with pytest.raises(InputError, match=f"there are no workloads for it. Put workload.jsonl into {traced.folder}"):
        load_problem(path)


def test_a_file_that_is_no_json_is_refused_with_its_line(traced):
    path = traced.write()
    path.write_text('{\n "name": "x",\n oops\n}')
    with pytest.raises(InputError, match="definition.json:3: is no JSON: Expecting property name"):
        load_problem(path)
