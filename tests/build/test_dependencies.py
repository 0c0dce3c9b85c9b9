"""Which headers are a compiler's own, wherever that is installed, and so no reason to build again elsewhere."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from harness.build import dependencies

pytestmark = pytest.mark.processes

LIST = """#!/bin/sh
echo 'ignoring nonexistent directory "/nowhere"' >&2
echo '#include "..." search starts here:' >&2
echo '#include <...> search starts here:' >&2
for folder in {folders}; do echo " $folder" >&2; done
[ -n "$CPATH" ] && echo " $CPATH" >&2
echo 'End of search list.' >&2
"""


@pytest.fixture
def gcc(tmp_path, monkeypatch):
    """A g++ in a folder of its own, which says that it looks for headers there, below it, and in /usr/local/include."""
    home = tmp_path / "opt" / "gcc"
    (home / "bin").mkdir(parents=True)
    own = home / "bin" / ".." / "lib" / "gcc" / "x86_64" / "13" / "include"
    program = home / "bin" / "g++"
    program.write_text(LIST.format(folders=f"{own} {home}/include/c++/13 /usr/local/include {tmp_path}/told"))
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    for name in ("CC", "NVCC_CCBIN", "CPATH"):
        monkeypatch.delenv(name, raising=False)
    return home


def left_of(paths, tmp_path):
    return dependencies.local(map(str, paths), tmp_path / "build", None)


def test_headers_that_came_with_a_compiler_elsewhere_are_the_toolchains(gcc, tmp_path):
    own = [gcc / "lib/gcc/x86_64/13/include/stddef.h", gcc / "include/c++/13/vector"]
    assert left_of(own, tmp_path) == set()


def test_what_others_put_where_a_compiler_looks_is_a_dependency(gcc, tmp_path, monkeypatch):
    others = [tmp_path / "told" / "tile.h", tmp_path / "mine" / "tile.h"]
    monkeypatch.setenv("CPATH", str(tmp_path / "mine"))
    assert left_of([*others, "/usr/local/include/tile.h"], tmp_path) == {*map(str, others), "/usr/local/include/tile.h"}


def test_a_compiler_in_a_folder_that_nvcc_is_told_of_is_asked_too(gcc, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "c++")
    assert left_of([gcc / "include/c++/13/vector"], tmp_path) != set()
    monkeypatch.setenv("NVCC_CCBIN", str(gcc / "bin"))
    assert left_of([gcc / "include/c++/13/vector"], tmp_path) == set()


def test_a_compiler_that_says_nothing_leaves_nothing_out(gcc, tmp_path):
    (gcc / "bin" / "g++").write_text("#!/bin/sh\nexit 1\n")
    assert left_of([gcc / "include/c++/13/vector"], tmp_path) == {str(gcc / "include/c++/13/vector")}


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_what_this_machines_compiler_reads_of_its_own_is_no_dependency(tmp_path, monkeypatch):
    for name in ("CC", "CXX", "NVCC_CCBIN", "CPATH"):
        monkeypatch.delenv(name, raising=False)
    source = tmp_path / "one.cpp"
    source.write_text("#include <stddef.h>\n#include <limits.h>\n#include <vector>\n")
    rule = subprocess.run(["g++", "-M", str(source)], capture_output=True, text=True, check=True).stdout
    assert left_of(dependencies.files_of_rule(rule), tmp_path) == {str(source)}
