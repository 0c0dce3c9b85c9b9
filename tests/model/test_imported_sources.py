"""Which modules beside a candidate are read with it, and which are not."""

from __future__ import annotations

import os

import pytest

from harness.model.files.imported_sources import UNREADABLE, imported_sources
from harness.protocol.source_import import WITH_FILES

MODEL = "\nclass ModelNew: pass\n"


@pytest.fixture
def read(tmp_path):
    """`read(text, name=text, …)`: the names of what is read with a candidate of this text, beside these files."""

    def names(text, **files):
        (tmp_path / "mine.py").write_text(text + MODEL, encoding="utf-8")
        for name, content in files.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")
        return [path.name for path, _ in imported_sources(tmp_path / "mine.py")]

    return names


@pytest.mark.parametrize("text", [
    "import _x", "import os, _x", "import os; import _x", "from _x import f", "from . import _x", "from ._x import f",
    "def f():\n    import _x", "import importlib\nx = importlib.import_module('_x')", "x = __import__('_x')",
    "exec(open('_x.py').read())", "text = 'parts/_x.py'",
])
def test_a_module_that_is_imported_or_named_is_read(read, text):
    assert read(text, _x="x = 1\n") == ["mine.py", "_x.py"]


def test_a_module_that_nobody_names_is_not(read):
    assert read("# import _x\n_y = 1", _x="x = 1\n") == ["mine.py"]


def test_what_a_module_imports_is_read_too_and_once(read):
    assert read("import _x", _x="import _y, _x", _y="import _x") == ["mine.py", "_x.py", "_y.py"]


def test_of_a_package_all_files_are(read):
    assert sorted(read("import parts.tiles", **{"parts/tiles": "x = 1", "parts/deep": "x = 2"})) == ["deep.py", "mine.py", "tiles.py"]


def test_another_candidates_file_is_where_it_is_imported(read):
    assert read("text = 'other'", other=MODEL) == ["mine.py"]
    assert read("import other", other=MODEL) == ["mine.py", "other.py"]


def test_a_folder_that_is_named_in_a_string_is_no_package_without_its_file(read):
    assert read("text = 'include'", **{"include/gen": "x = 1"}) == ["mine.py"]
    assert sorted(read("text = 'include'", **{"include/__init__": ""})) == ["__init__.py", "gen.py", "mine.py"]


def test_what_is_no_file_is_not_waited_for(read, tmp_path):
    (tmp_path / "pipes").mkdir()
    os.mkfifo(tmp_path / "pipes" / "one.py")
    os.mkfifo(tmp_path / "_x.py")
    (tmp_path / "pipes" / "folder.py").mkdir()
    assert read("import pipes, _x") == ["mine.py"]


def test_beside_a_copy_with_its_files_all_are_its_own(tmp_path):
    folder = tmp_path / f"{WITH_FILES}0"
    folder.mkdir()
    (folder / "mine.py").write_text("x = __import__('parts')" + MODEL)
    (folder / "parts.py").write_text(MODEL)
    assert [path.name for path, _ in imported_sources(folder / "mine.py")] == ["mine.py", "parts.py"]


@pytest.mark.parametrize("content", [
    "# coding: utf-7\nx = 1\n".encode(), b"x = '\xff'\n", b"x = 1\n" * 200_000,
], ids=["of another encoding", "no text", "of more than a megabyte"])
def test_a_module_that_the_judge_reads_otherwise_than_python_is_unreadable(tmp_path, content):
    (tmp_path / "mine.py").write_text("import _x" + MODEL, encoding="utf-8")
    (tmp_path / "_x.py").write_bytes(content)
    assert [text for _, text in imported_sources(tmp_path / "mine.py")][1:] == [UNREADABLE]
