"""A project of the user's own: its problems and candidates, and those that are shipped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.cli import main
from harness.model.candidate import find_candidates
from harness.model.errors import InputError
from harness.model.paths import SHIPPED
from harness.model.problem import find_problem, load_problem, problems_by_name, typed

CANDIDATE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


@pytest.fixture
def mine(tmp_path, monkeypatch) -> Path:
    """A project with the problem row_softmax, in the working directory."""
    monkeypatch.chdir(tmp_path)
    assert main(["new-problem", "row_softmax"]) == 0
    return tmp_path


def put(*paths: str) -> None:
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CANDIDATE)


def names_for(word: str, candidates: Path | None = None) -> list[str]:
    return [each.name for each in find_candidates(load_problem(find_problem(Path(word)), candidates).candidate_folders)]


def test_a_problem_s_name_means_the_project_s_and_then_the_shipped_one(mine):
    assert find_problem(Path("row_softmax")) == Path("problems/row_softmax.yaml")
    assert find_problem(Path("tril_matmul")) == SHIPPED / "problems" / "tril_matmul.yaml"
    for suffix in (".yaml", ".py"):
        shutil.copy(SHIPPED / f"problems/tril_matmul{suffix}", "problems")
    assert find_problem(Path("tril_matmul")) == Path("problems/tril_matmul.yaml")
    with pytest.raises(InputError, match="Did you mean 'row_softmax'"):
        find_problem(Path("row_softmx"))


def test_from_a_folder_inside_the_project_it_is_the_same_problem(mine, monkeypatch):
    (mine / "notes").mkdir()
    monkeypatch.chdir(mine / "notes")
    expected = mine / "problems" / "row_softmax.yaml"
    assert find_problem(Path("row_softmax")) == find_problem(Path("problems/row_softmax.yaml")) == expected
    assert typed(expected) == "row_softmax"
    assert main(["new", "row_softmax", "first"]) == 0
    assert (mine / "candidates/row_softmax/first.py").exists()


def test_a_project_of_kernelbench_files_alone_has_them_for_problems(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put("problems/1_relu.py", "problems/_notes.py")
    assert list(problems_by_name())[0] == "1_relu" and "_notes" not in problems_by_name()


def test_candidates_for_a_shipped_problem_stand_beside_those_that_are_shipped(mine):
    put("candidates/tril_matmul/mine.py", "candidates/tril_matmul/tiled_shared.py")
    problem = load_problem(find_problem(Path("tril_matmul")))
    found = {each.name: each.path for each in find_candidates(problem.candidate_folders)}
    assert found["mine"] == Path("candidates/tril_matmul/mine.py")
    assert found["tiled_shared"] == Path("candidates/tril_matmul/tiled_shared.py")
    assert found["openmp_cpu"] == SHIPPED / "candidates/tril_matmul/openmp_cpu.py"


def test_a_problem_of_one_s_own_with_a_shipped_name_has_no_shipped_candidates(mine):
    for suffix in (".yaml", ".py"):
        shutil.copy(SHIPPED / f"problems/tril_matmul{suffix}", "problems")
    put("candidates/tril_matmul/mine.py")
    assert names_for("tril_matmul") == ["mine"]


def test_candidates_beside_a_problem_of_another_project_count_too(mine, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    shutil.copytree("problems", other / "problems")
    put(str(other / "candidates/row_softmax/theirs.py"), "candidates/row_softmax/mine.py")
    assert names_for(str(other / "problems/row_softmax.yaml")) == ["mine", "theirs"]


def test_candidates_names_the_folder_of_all_problems_or_that_of_one(mine):
    put("drafts/row_softmax/a.py", "drafts/other/b.py", "flat/c.py")
    assert names_for("row_softmax", Path("drafts")) == names_for("row_softmax", Path("drafts/row_softmax")) == ["a"]
    assert names_for("row_softmax", Path("flat")) == ["c"]


@pytest.mark.parametrize(("folder", "written"), [
    ("drafts", "drafts/row_softmax/mine.py"), ("none", "none/row_softmax/mine.py"), ("flat", "flat/mine.py"),
])
def test_a_new_candidate_is_written_where_a_run_with_the_same_flag_looks(mine, folder, written):
    put("drafts/row_softmax/a.py", "flat/c.py")
    assert main(["new", "row_softmax", "mine", "--candidates", folder]) == 0
    assert Path(written).exists() and "mine" in names_for("row_softmax", Path(folder))


def test_a_new_candidate_goes_into_the_project_and_never_beside_what_is_shipped(mine, capsys):
    before = sorted(SHIPPED.glob("candidates/*/*.py"))
    assert main(["new", "tril_matmul", "mine", "--from", "tiled_shared"]) == 0
    assert Path("candidates/tril_matmul/mine.py").exists() and sorted(SHIPPED.glob("candidates/*/*.py")) == before
    assert "python run.py tril_matmul --only mine" in capsys.readouterr().out


def test_the_list_has_the_project_s_problems_first_and_their_candidates(mine, capsys):
    put("candidates/row_softmax/first.py", "candidates/tril_matmul/mine.py")
    capsys.readouterr()
    assert main(["list", "--json"]) == 0
    problems = {each["name"]: each for each in json.loads(capsys.readouterr().out)["problems"]}
    assert list(problems)[0] == "row_softmax" and problems["tril_matmul"]["typed"] == "tril_matmul"
    names = {name: {each["name"] for each in problems[name]["candidates"]} for name in problems}
    assert names["row_softmax"] == {"first"} and {"mine", "tiled_shared"} <= names["tril_matmul"]


@pytest.mark.parametrize("words", [
    ["row_softmax"], ["run", "row_softmax"], ["problems/row_softmax.yaml"], ["row_softmax", "--watch"],
    ["row_softmax", "--resume"], ["row_softmax", "--tune", "x"],
], ids=" ".join)
@pytest.mark.processes
def test_a_problem_that_has_no_candidates_yet_is_told_how_to_get_one_by_every_way_to_run(mine, words, capsys):
    assert main([*words, "--device", "cpu"]) == 2
    assert "Type python run.py new row_softmax my_first" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["compare"], ["scores"], ["report"], ["show", "x"]], ids=" ".join)
def test_results_are_looked_for_in_the_project_from_any_folder_of_it(mine, words, capsys, monkeypatch):
    (mine / "results").mkdir()
    (mine / "notes").mkdir()
    monkeypatch.chdir(mine / "notes")
    assert main(words) == 2
    assert str(mine / "results") in capsys.readouterr().err
