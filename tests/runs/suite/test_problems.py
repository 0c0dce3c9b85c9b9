"""Which problem files a word means, and that a bad one costs its own line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.runs.suite.problems import is_suite, load_all, problem_paths

GOOD = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n" \
       "def get_inputs():\n    return [torch.rand(4)]\ndef get_init_inputs():\n    return []\n"


@pytest.fixture
def level(tmp_path) -> Path:
    folder = tmp_path / "level1"
    folder.mkdir()
    for name in ("1_a", "2_b", "10_c"):
        (folder / f"{name}.py").write_text(GOOD)
    return folder


def test_numbers_are_ordered_as_numbers_and_each_file_comes_once(level):
    found = problem_paths([level / "*.py", level / "10_c.py", level])
    assert [path.stem for path in found] == ["1_a", "2_b", "10_c"]


def test_a_folder_with_yaml_files_stands_for_those(level):
    (level / "x.yaml").write_text("title: x\nreference: 1_a.py\n")
    assert [path.name for path in problem_paths([level])] == ["x.yaml"]


def test_hidden_and_underscored_files_are_no_problems(level):
    for name in ("_notes.py", ".hidden.py"):
        (level / name).write_text("")
    assert len(problem_paths([level])) == len(problem_paths([level / "*.py"])) == 3


def test_more_than_one_file_is_a_suite_and_one_file_is_none(level):
    assert is_suite([level]) and is_suite([level / "*.py"]) and is_suite([level / "1_a.py", level / "2_b.py"])
    assert not is_suite([level / "1_a.py"]) and not is_suite([level / "missing.py"])


@pytest.mark.parametrize(("word", "said"), [("*.yaml", "no problem file matches"), ("empty", "holds no problem file")])
def test_words_that_mean_nothing_are_refused(level, word, said):
    (level / "empty").mkdir()
    with pytest.raises(InputError, match=said):
        problem_paths([level / word])


def test_a_problem_that_does_not_load_has_its_fault_and_the_others_load(level):
    (level / "3_broken.py").write_text("class Model: pass\n")
    (level / "4_syntax.py").write_text("def (:\n")
    loaded = {each.path.stem: each for each in load_all([*problem_paths([level]), level / "5_missing.py"], None)}
    assert [name for name, each in loaded.items() if each.problem] == ["1_a", "2_b", "10_c"]
    assert "3_broken.py" in loaded["3_broken"].fault and "4_syntax.py:1" in loaded["4_syntax"].fault
    assert "no such file" in loaded["5_missing"].fault


def test_two_problems_of_one_name_are_not_mixed(level, tmp_path):
    other = tmp_path / "level2"
    other.mkdir()
    (other / "1_a.py").write_text(GOOD)
    first, second = load_all([level / "1_a.py", other / "1_a.py"], None)
    assert first.problem and "the same name" in second.fault
