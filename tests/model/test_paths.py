"""Where things are looked for, what is typed to start the program, and which package `harness` is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.model import paths
from harness.model.paths import SHIPPED, folders_of, is_shipped, located, own, project, python_of


@pytest.fixture
def mine(tmp_path, monkeypatch) -> Path:
    """A project whose folder is the working one."""
    (tmp_path / "problems").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_project_is_the_nearest_folder_upward_that_has_problems(mine, monkeypatch):
    inner = mine / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert (project(), own("results")) == (mine, mine / "results")
    (mine / "a" / "problems").mkdir()
    assert (project(), own("results")) == (mine / "a", mine / "a" / "results")


def test_without_a_project_new_files_go_into_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (project(), own("results"), folders_of("problems")) == (None, Path("results"), [SHIPPED / "problems"])


def test_a_working_directory_that_is_gone_is_no_project(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert (project(), own("results")) == (None, Path("results"))


def test_the_project_comes_before_what_is_shipped_and_a_checkout_is_named_once(mine, monkeypatch):
    assert folders_of("problems") == [Path("problems"), SHIPPED / "problems"]
    assert folders_of("candidates") == [SHIPPED / "candidates"]
    monkeypatch.chdir(SHIPPED)
    assert [each.resolve() for each in folders_of("problems")] == [SHIPPED / "problems"]


def test_a_path_is_looked_for_here_then_in_the_project_then_in_what_is_shipped(mine, monkeypatch):
    shipped = Path("problems/tril_matmul.yaml")
    assert located(shipped) == SHIPPED / shipped
    (mine / shipped).touch()
    assert located(shipped) == shipped
    (mine / "sub").mkdir()
    monkeypatch.chdir(mine / "sub")
    assert located(shipped) == mine / shipped
    assert located(Path("problems/none.yaml")) == Path("problems/none.yaml")


def test_a_shipped_candidate_is_one_s_own_to_write_beside_in_its_checkout_alone(mine, monkeypatch):
    candidate = SHIPPED / "candidates" / "tril_matmul" / "tiled_shared.py"
    assert is_shipped(candidate) and not is_shipped(Path("candidates/tril_matmul/tiled_shared.py"))
    monkeypatch.chdir(SHIPPED)
    assert not is_shipped(candidate)


@pytest.mark.parametrize(("started_as", "is_installed", "words"), [
    ("run.py", False, "python run.py"), ("/clone/run.py", False, "python run.py"), ("pytest", False, "python run.py"),
    ("/venv/bin/kernel-referee", True, "kernel-referee"), ("/venv/bin/kernel-referee", False, "kernel-referee"),
    ("/lib/harness/__main__.py", True, "python -m harness"), ("mine.py", True, "kernel-referee"),
    ("", True, "kernel-referee"),
])
def test_messages_name_the_program_as_it_was_started(started_as, is_installed, words):
    assert paths._program(started_as, is_installed) == words


@pytest.mark.processes
def test_a_module_of_ours_runs_whatever_is_called_harness_on_the_path(tmp_path):
    (tmp_path / "harness.py").write_text("raise SystemExit('not ours')")
    (tmp_path / "argparse.py").write_text("raise SystemExit('not the standard one')")
    done = subprocess.run(
        python_of("harness", "--version"), cwd=tmp_path, capture_output=True, text=True, check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    beside = subprocess.run(
        python_of("harness", "--version"), env={"PYTHONPATH": str(SHIPPED / "nowhere")}, capture_output=True, text=True,
        check=False,
    )
    assert beside.stdout == done.stdout


@pytest.mark.processes
def test_a_module_of_another_repository_runs_beside_ours(tmp_path):
    (tmp_path / "victim.py").write_text("import sys, harness.model.errors\nprint(__name__, sys.path[0], sys.argv[1:])")
    done = subprocess.run(
        python_of("victim", "3", repository=tmp_path), capture_output=True, text=True, check=True, cwd=sys.prefix
    )
    assert done.stdout == f"__main__ {tmp_path} ['3']\n"
