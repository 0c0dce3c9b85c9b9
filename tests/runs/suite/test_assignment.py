"""Whose candidate a file is, by its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.problem import load_problem
from harness.runs.suite.problems import owned_files

SAMPLE = load_problem(Path(__file__).resolve().parents[2] / "fixtures/kernelbench/linear_relu.py")


def problem(name: str, level: str = "level1"):
    return replace(SAMPLE, name=name, path=Path(f"/backend/{level}/{name}.py"))


@pytest.fixture
def owners(tmp_path):
    """`owners(problems, files)`: the problem that each file was given to."""

    def find(problems, *files: str) -> dict[str, str | None]:
        for name in files:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("")
        owned = owned_files(problems, tmp_path)
        found = {str(path.relative_to(tmp_path)): name for name, paths in owned.files.items() for path in paths}
        return found | {str(path.relative_to(tmp_path)): None for path in owned.nobodys}

    return find


def test_a_folder_of_the_problems_name_holds_its_candidates(owners):
    found = owners([problem("15_x"), problem("1_y")], "15_x/mine.py", "15_x/_notes.py", "1_y/mine.py", "16_z/mine.py")
    assert found == {"15_x/mine.py": "15_x", "1_y/mine.py": "1_y", "16_z/mine.py": None}


def test_a_file_that_begins_with_the_problems_name_is_its_candidate_and_the_longest_name_wins(owners):
    problems = [problem("1_relu"), problem("1_relu_bias"), problem("11_relu")]
    files = ("1_relu.py", "1_relu_fast.py", "1_relu_bias.py", "1_relu_bias_v2.py", "1_relus.py", "11_relu-a.py")
    assert owners(problems, *files) == {
        "1_relu.py": "1_relu", "1_relu_fast.py": "1_relu", "1_relu_bias.py": "1_relu_bias",
        "1_relu_bias_v2.py": "1_relu_bias", "1_relus.py": None, "11_relu-a.py": "11_relu",
    }


def test_what_kernelbench_generates_goes_by_level_and_number(owners):
    problems = [problem("15_x"), problem("5_y"), problem("15_z", "level2")]
    files = ("level_1_problem_15_sample_0_kernel.py", "level_2_problem_15_sample_3_kernel.py",
             "level_1_problem_5_sample_0_kernel.py", "level_3_problem_5_sample_0_kernel.py")
    assert owners(problems, *files) == {
        files[0]: "15_x", files[1]: "15_z", files[2]: "5_y", files[3]: None}


def test_a_problem_outside_a_level_folder_takes_its_number_of_any_level(owners):
    assert owners([problem("15_x", "downloads")], "level_3_problem_15_sample_0_kernel.py") == {
        "level_3_problem_15_sample_0_kernel.py": "15_x"}


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such folder of candidates"):
        owned_files([problem("1_a")], tmp_path / "nowhere")
