"""Which modules beside a candidate are read with it, and which are not."""

from __future__ import annotations

import pytest

from harness.model.files.imported_sources import UNREADABLE, imported_sources

MODEL = "\nclass ModelNew: pass\n"


@pytest.fixture
def read(tmp_path):
    """`read(text, name=text, …)`: the names of what is read with a candidate of this text, beside these files."""

    def names(text, **files):
        (tmp_path / "mine.py").write_text(text + MODEL, encoding="utf-8")
        for name, content in files.items():
            path = tmp_path / f"{name.replace('__', '/')}.py"
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
    assert sorted(read("import parts.tiles", parts__tiles="x = 1", parts__deep="x = 2")) == ["deep.py", "mine.py", "tiles.py"]


def test_another_candidates_file_is_not(read):
    assert read("import other", other=MODEL) == ["mine.py"]


@pytest.mark.parametrize("content", [
    "# coding: utf-7\nx = 1\n".encode(), b"x = '\xff'\n", b"x = 1\n" * 200_000,
], ids=["of another encoding", "no text", "of more than a megabyte"])
def test_a_module_that_the_judge_reads_otherwise_than_python_is_unreadable(tmp_path, content):
    (tmp_path / "mine.py").write_text("import _x" + MODEL, encoding="utf-8")
    (tmp_path / "_x.py").write_bytes(content)
    assert [text for _, text in imported_sources(tmp_path / "mine.py")][1:] == [UNREADABLE]
