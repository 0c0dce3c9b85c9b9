"""PARAMETERS in a source: what is read of it without importing it, and the source with one value of each."""

from __future__ import annotations

import ast

import pytest

from harness.model.candidate import read_candidate, values_of
from harness.model.errors import InputError
from harness.model.files.parameters import combinations, declared, frozen, parameters_text, tuned_in
from harness.model.files.python_source import SourceFault

SOURCE = '''import torch

PARAMETERS = {  # ä: bytes are not characters
    "BM": [64, 128],
    "KIND": ["a", "b"],
}  # end
M = PARAMETERS["BM"][0]


class ModelNew(torch.nn.Module):
    pass
'''
ALLOWED = {"BM": [64, 128], "KIND": ["a", "b"]}


def of(text: str):
    return declared(ast.parse(text))


def test_what_a_source_declares_is_read_without_importing_it():
    assert of(SOURCE) == ALLOWED
    assert of("x = 1") is None
    assert of("PARAMETERS: dict = {'A': [True, 1.5]}") == {"A": [True, 1.5]}


@pytest.mark.parametrize(("text", "said"), [
    ("PARAMETERS = {'A': range(3)}", "written out"), ("PARAMETERS = make()", "written out"),
    ("PARAMETERS = [1, 2]", "must be a dict"), ("PARAMETERS = {}", "must be a dict"),
    ("PARAMETERS = {1: [2]}", "as a name"), ("PARAMETERS = {'A B': [2]}", "as a name"),
    ("PARAMETERS = {'A': 2}", "must be a list"), ("PARAMETERS = {'A': []}", "must be a list"),
    ("PARAMETERS = {'A': [[1]]}", "must be a list"), ("PARAMETERS = {'A': [1, 1]}", "twice"),
])
def test_what_is_no_dict_of_lists_is_told_with_its_line(text, said):
    with pytest.raises(SourceFault, match=said) as caught:
        of(f"\n{text}")
    assert caught.value.line == 2


def test_the_frozen_source_has_one_value_of_each_and_every_line_where_it_was():
    text = frozen(SOURCE, ast.parse(SOURCE), {"BM": 128, "KIND": "b"})
    assert of(text) == {"BM": [128], "KIND": ["b"]}
    before, after = SOURCE.splitlines(), text.splitlines()
    assert len(before) == len(after) and before[6:] == after[6:] and after[5].endswith("}  # end")


def test_on_one_line_what_stands_around_it_stays():
    source = "é = 1; PARAMETERS = {'A': [1, 2]}; b = 3\n"
    assert frozen(source, ast.parse(source), {"A": 2}) == "é = 1; PARAMETERS = {'A': [2]}; b = 3\n"


def test_what_python_takes_for_no_end_of_a_line_is_none():
    source = "a = 'x\u2028y\x0c'\x0c\nPARAMETERS = {'A': [1, 2]}\n"
    assert frozen(source, ast.parse(source), {"A": 2}) == source.replace("[1, 2]", "[2]")


def test_1_and_true_are_two_values():
    assert of("PARAMETERS = {'A': [1, True]}") == {"A": [1, True]}


def test_the_defaults_come_first_of_all_combinations():
    assert list(combinations(ALLOWED)) == [
        {"BM": 64, "KIND": "a"}, {"BM": 64, "KIND": "b"}, {"BM": 128, "KIND": "a"}, {"BM": 128, "KIND": "b"},
    ]
    assert parameters_text({"BM": 64, "KIND": "a"}) == "BM=64 KIND=a"


@pytest.fixture
def candidate(tmp_path):
    """`candidate(yaml)`: the candidate as it is read with that text beside it."""
    def read(text: str | None = None, source: str = SOURCE):
        (tmp_path / "mine.py").write_text(source, encoding="utf-8")
        if text is not None:
            (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
        return read_candidate(tmp_path / "mine.py")
    return read


def test_values_in_the_yaml_count_and_the_others_are_the_defaults(candidate, tmp_path):
    plain = candidate()
    assert (plain.parameters, plain.is_frozen, plain.source) == ("BM=64 KIND=a", False, SOURCE)
    tuned = candidate("parameters: {BM: 128}\ntuned: {speedup: 2.0}\n")
    assert (tuned.parameters, tuned.is_frozen, tuned.fault) == ("BM=128 KIND=a", True, None)
    assert tuned.source_hash != plain.source_hash
    copy = tuned.file_in(tmp_path)
    assert copy.name == "mine.py" and of(copy.read_text(encoding="utf-8")) == {"BM": [128], "KIND": ["a"]}
    assert plain.file_in(tmp_path) == plain.path
    assert read_candidate(tuned.path, tuned=False) == plain


@pytest.mark.parametrize(("text", "said"), [
    ("parameters: {BM: 96}", "mine.yaml:1: BM: 96 is not allowed. PARAMETERS allows 64 or 128"),
    ("# x\nparameters:\n  KINDS: a\n", "mine.yaml:3: KINDS is no parameter of mine.py. Did you mean KIND?"),
    ("parameters: {X: 1}", "X is no parameter of mine.py. PARAMETERS has BM and KIND"),
    ("tuned: {}", "has no parameters"), ("", "is empty"), ("parameters: {BM: [64]}", "not allowed"),
    ('parameters: {BM: "64"}', "not allowed"),
    ("parameters: {BM: [" + "64, " * 5000 + "]}", "BM: [64, 64, 64, 64, 64, 64, ...] is not allowed"),
    ("parameters: {BM: [" + "64, " * 10_000 + "]}", "holds more than 10,000 values"),
])
def test_a_yaml_that_does_not_fit_costs_this_candidate_its_row(candidate, text, said):
    found = candidate(text)
    assert said in found.fault and found.fault_code.value == "import_error"


def test_parameters_that_cannot_be_read_are_the_candidates_fault(candidate):
    found = candidate(source=SOURCE.replace("[64, 128]", "64"))
    assert 'mine.py:3: PARAMETERS["BM"] must be a list' in found.fault
    with pytest.raises(InputError, match="mine.py:3"):
        values_of(found)


def test_a_file_that_reads_what_lies_beside_it_is_not_copied(candidate):
    assert "reads what lies beside it" in candidate("parameters: {BM: 64}", SOURCE + "HERE = __file__\n").fault


def test_a_yaml_beside_a_candidate_without_parameters_is_no_business_of_its(candidate):
    assert candidate("anything: 1", "class ModelNew: pass\n").fault is None


def test_the_yaml_is_read_with_the_values_types(tmp_path):
    (tmp_path / "a.yaml").write_text("parameters: {A: 1.0, B: true, C: '1'}\n", encoding="utf-8")
    allowed = {"A": [2.0, 1.0], "B": [False, True], "C": ["0", "1"]}
    assert tuned_in(tmp_path / "a.yaml", allowed) == {"A": 1.0, "B": True, "C": "1"}
