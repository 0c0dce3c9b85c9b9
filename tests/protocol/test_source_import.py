"""What runs is the text of the file, whatever lies beside it."""

from __future__ import annotations

import importlib.util
import inspect
import py_compile
import sys

import pytest

from harness.protocol.source_import import import_source

READ, OTHER = "def answer():\n    return 'read'\n", "def answer():\n    return 'other'\n"


@pytest.mark.parametrize("mode", list(py_compile.PycInvalidationMode))
def test_bytecode_beside_a_file_is_not_taken_for_it(tmp_path, mode):
    path, other = tmp_path / "mine.py", tmp_path / "other.py"
    path.write_text(READ)
    other.write_text(OTHER)
    cached = importlib.util.cache_from_source(str(path))
    py_compile.compile(str(other), cfile=cached, invalidation_mode=mode)
    module = import_source(path)
    assert module.answer() == "read" and inspect.getsource(module.answer) == READ


def test_python_itself_would_take_it(tmp_path):
    path, other = tmp_path / "mine.py", tmp_path / "other.py"
    path.write_text(READ)
    other.write_text(OTHER)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(other), cfile=importlib.util.cache_from_source(str(path)), invalidation_mode=mode)
    spec = importlib.util.spec_from_file_location("mine_as_ever", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.answer() == "other"


def test_an_encoding_that_a_file_declares_hides_no_code(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("# coding: utf-7\ndef answer():\n    return 'read'\n# +AAo-def answer(): return 'other'\n")
    assert import_source(path).answer() == "read"
    path.write_bytes(b"\xef\xbb\xbf" + READ.replace("\n", "\r\n").encode())
    assert import_source(path).answer() == "read", "with a byte-order mark and another system's line ends"


def test_what_is_not_utf_8_is_not_run(tmp_path):
    path = tmp_path / "mine.py"
    path.write_bytes(b"# coding: latin-1\nNAME = '\xe9'\n")
    with pytest.raises(UnicodeDecodeError):
        import_source(path)


def test_a_file_may_be_called_as_a_package_is(tmp_path):
    path = tmp_path / "json.py"
    path.write_text(READ)
    assert import_source(path).__name__ == "candidate_json"


def test_what_the_file_raises_is_raised(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("raise KeyError('of its own')")
    with pytest.raises(KeyError, match="of its own"):
        import_source(path)


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """`beside(text, …)`: a candidate that imports from its folder, and what its `answer` gives."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "path_hooks", [*sys.path_hooks])

    def answered(imports):
        path = tmp_path / "mine.py"
        path.write_text(f"import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\n{imports}\n")
        try:
            return import_source(path).answer()
        finally:
            for name in [name for name in sys.modules if name.partition(".")[0] in ("_parts", "_pack")]:
                del sys.modules[name]

    return answered


def compiled_other(place, name, cached):
    """Bytecode of other text in the place of that of `place`/`name`.py, which Python takes without a look at the text."""
    other = place / "other.py"
    other.write_text(OTHER)
    py_compile.compile(str(other), cfile=str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    other.unlink()


@pytest.mark.parametrize(("imports", "file"), [
    ("from _parts import answer", "_parts.py"), ("from _pack import answer", "_pack/__init__.py"),
    ("from _pack.tiles import answer", "_pack/tiles.py"),
])
def test_bytecode_of_a_module_beside_it_is_not_taken_either(beside, tmp_path, imports, file):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(READ)
    compiled_other(tmp_path, path.stem, importlib.util.cache_from_source(str(path)))
    assert beside(imports) == "read"


def test_a_module_beside_it_of_which_there_is_bytecode_alone_is_none(beside, tmp_path):
    compiled_other(tmp_path, "_parts", tmp_path / "_parts.pyc")
    with pytest.raises(ModuleNotFoundError):
        beside("from _parts import answer")


def test_an_encoding_that_a_module_beside_it_declares_hides_no_code(beside, tmp_path):
    (tmp_path / "_parts.py").write_text("# coding: utf-7\n" + READ + "# +AAo-def answer(): return 'other'\n")
    assert beside("from _parts import answer") == "read"


def test_what_is_installed_in_an_environment_below_its_folder_is_imported_as_ever(beside, tmp_path, monkeypatch):
    packages = tmp_path / ".venv" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "_parts.py").write_text(READ)
    compiled_other(tmp_path, "_parts", importlib.util.cache_from_source(str(packages / "_parts.py")))
    sys.path.append(str(packages))
    assert beside("from _parts import answer") == "other"
