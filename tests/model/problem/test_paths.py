"""Paths that are no problem file."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.paths import REPOSITORY
from harness.model.problem import load_problem


@pytest.mark.parametrize(("path", "says"), [
    ("problems/tril_matmull.yaml", ": no such file. Did you mean problems/tril_matmul.yaml?"),
    ("problms/tril_matmul.yaml",
     ": no such file: there is no folder problms. Did you mean problems/tril_matmul.yaml?"),
    ("problems/tril_matmul", ": no such file. Did you mean problems/tril_matmul.yaml?"),
    ("tril_matmul", ": no such file. Did you mean problems/tril_matmul.yaml?"),
    ("tril_matmul.yml", ": no such file. Did you mean problems/tril_matmul.yaml?"),
    ("problems/TRIL_MATMUL.yaml", ": no such file. Did you mean problems/tril_matmul.yaml?"),
    ("problems/tril.py", ": no such file. Did you mean problems/tril_matmul.py?"),
    ("wibble", ": no such file. There are problems/softmax.yaml and problems/tril_matmul.yaml."),
    ("problems", ": is a folder, not a file. Name a file in it, for example problems/softmax.yaml"),
    ("problems/notes.txt", ": is no problem file. A problem is a .yaml file, a KernelBench .py file"),
    ("/dev/null", ": is not a regular file, so it cannot be read"),
    ("problems/softmax.yaml/x", ": no such file: there is no folder problems/softmax.yaml. There are"),
    ("x" * 300 + ".yaml", ": cannot be read (File name too long)"),
    ("a\0b.yaml", ": cannot be read ("),
])
def test_a_path_that_is_no_problem_file_offers_the_nearest(files, path, says):
    for name in ("tril_matmul.yaml", "tril_matmul.py", "softmax.yaml", "notes.txt", ".hidden.yaml"):
        Path("problems", name).write_text("x")
    with pytest.raises(InputError) as caught:
        load_problem(path)
    assert str(caught.value).startswith(f"{path}{says}")


def test_from_the_repository_s_own_folder_each_problem_is_offered_once(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    with pytest.raises(InputError) as caught:
        load_problem("problems/wibble.yaml")
    assert str(caught.value).count("problems/tril_matmul.yaml") == 1


def test_a_file_that_may_not_be_read_says_what_to_type(files, monkeypatch):
    files.load()

    def refused(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(InputError) as caught:
        load_problem("problems/x.yaml")
    assert str(caught.value) == "problems/x.yaml: permission denied. Type chmod u+r problems/x.yaml"
