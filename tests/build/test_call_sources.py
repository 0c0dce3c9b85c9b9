"""What a call of `load` is built from."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from harness.build import extension_maker
from harness.build.source_suffixes import HEADERS


def test_headers_of_any_suffix_that_lie_beside_a_source_are_read_with_it(tmp_path):
    for name in ("kernel.cu", "bind.cpp", "notes.txt", *(f"tile{suffix}" for suffix in HEADERS)):
        (tmp_path / name).write_text(name)
    arguments = {"sources": [str(tmp_path / "kernel.cu"), str(tmp_path / "bind.cpp")]}
    assert extension_maker.headers_beside(extension_maker.source_files(arguments)) == {tmp_path / f"tile{each}" for each in HEADERS}
    cpp, cuda = extension_maker.texts_of_halves("load", arguments)
    assert sorted(cuda) == ["kernel.cu", "tile.cuh"]
    assert sorted(cpp) == sorted(["bind.cpp", *(f"tile{suffix}" for suffix in HEADERS - {".cuh"})])
