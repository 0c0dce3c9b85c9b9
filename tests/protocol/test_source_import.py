"""What runs is the text of the file, whatever lies beside it."""

from __future__ import annotations

import importlib.util
import inspect
import py_compile

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
