"""What of its own folder a candidate may read: what lies beside it and is no other candidate's."""

from __future__ import annotations

import pytest

from harness.model.files.neighbours import beside

MODEL = "class ModelNew: pass\n"


@pytest.fixture
def folder(tmp_path):
    files = {
        "mine.py": MODEL, "mine.yaml": "", "mine.cu": "", "other.py": MODEL, "other.yaml": "", "other.cu": "",
        "other/tiles.cuh": "", "_tiles.py": MODEL, "helper.py": "SIZE = 3\n", "common.cuh": "", "include/tile.cuh": "",
        "star.py": "from _tiles import *\n", "earlier/old.py": MODEL, ".git/config": "", "__pycache__/other.pyc": "",
        "results/mine/1.csv": "",
    }
    for name, text in files.items():
        (tmp_path / "candidates" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "candidates" / name).write_text(text)
    return tmp_path / "candidates"


def names(path):
    return {each.name for each in beside(path).own}


def test_its_own_files_and_what_is_common_to_all_are_its_to_read(folder):
    assert names(folder / "mine.py") == {"mine.py", "mine.yaml", "mine.cu", "_tiles.py", "helper.py", "common.cuh", "include"}
    assert beside(folder / "mine.py").folders == [folder]


def test_of_another_candidate_nothing_is_that_bears_its_name(folder):
    assert not {"other.py", "other.yaml", "other.cu", "other", "star.py"} & names(folder / "mine.py")


def test_a_folder_in_which_candidates_lie_is_not_one_of_headers(folder):
    assert "earlier" not in names(folder / "mine.py")
    (folder / "include" / "deep").mkdir()
    (folder / "include" / "deep" / "one.py").write_text(MODEL)
    assert "include" not in names(folder / "mine.py")


def test_a_file_that_becomes_a_candidate_is_one_from_then_on(folder):
    assert "helper.py" in names(folder / "mine.py")
    (folder / "helper.py").write_text(MODEL)
    assert "helper.py" not in names(folder / "mine.py")


def test_in_a_home_or_a_project_only_its_own_name_counts(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    assert names(folder / "mine.py") == {"mine.py", "mine.yaml", "mine.cu"}
    monkeypatch.setenv("HOME", "/nowhere")
    (folder / "problems").mkdir()
    assert names(folder / "mine.py") == {"mine.py", "mine.yaml", "mine.cu"}


def test_of_a_link_the_target_is_looked_at_too(folder, tmp_path):
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "theirs.py").write_text(MODEL)
    link = tmp_path / "linked" / "mine.py"
    link.symlink_to(folder / "mine.py")
    places = beside(link)
    assert {link, folder / "mine.py", folder / "common.cuh"} <= set(places.own)
    assert not {tmp_path / "linked" / "theirs.py", folder / "other.py"} & set(places.own)
    assert places.folders == [tmp_path / "linked", folder]
