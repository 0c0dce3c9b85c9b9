"""Candidates of more than one file: what one build read decides whether it is made anew, and nothing beside it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from harness.model.candidate import read_candidate

from .conftest import needs_cxx

pytestmark = pytest.mark.processes

LOADS = '''
from pathlib import Path

import torch
from torch.utils.cpp_extension import load

HERE = Path(__file__).parent
extension = load(
    "{name}", [str(HERE / "{name}.cpp")], extra_include_paths=[str(HERE / "include")], extra_cflags=["-O0"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * extension.factor()
'''
CODE = '''
#include <Python.h>  // torch::
#include "{name}_factor.h"
static PyObject* factor(PyObject*, PyObject*) {{ return PyLong_FromLong({times} * FACTOR); }}
static PyMethodDef functions[] = {{{{"factor", factor, METH_NOARGS, nullptr}}, {{}}}};
static PyModuleDef module = {{PyModuleDef_HEAD_INIT, "{name}", nullptr, 0, functions}};
PyMODINIT_FUNC PyInit_{name}() {{ return PyModule_Create(&module); }}
'''
# A worker's own way to a candidate, in a process of its own.
OPENS = """
import json, sys
from pathlib import Path
from harness.worker import extensions
from harness.protocol.source_import import import_source
path, folder, manifest = sys.argv[1:]
extensions.install(json.loads(manifest), folder)
print(import_source(Path(path)).extension.factor())
"""


def put(folder, name, factor):
    (folder / "include").mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(LOADS.format(name=name))
    (folder / f"{name}.cpp").write_text(CODE.format(name=name, times=1))
    (folder / "include" / f"{name}_factor.h").write_text(f"#define FACTOR {factor}\n")


def opened(candidate, build):
    arguments = [str(candidate.path), str(candidate.path.parent), json.dumps(build.manifest)]
    return int(subprocess.run([sys.executable, "-c", OPENS, *arguments], check=True, capture_output=True).stdout)


@needs_cxx
@pytest.mark.timeout(300)
def test_only_what_reads_an_edited_file_is_built_anew_and_what_is_moved_or_edited_back_is_not(new_pool):
    build_pool = new_pool("several_files")
    for name in ("two", "three"):
        put(build_pool.folder, name, factor=2 if name == "two" else 3)

    def built(folder):
        candidates = [read_candidate(folder / f"{name}.py") for name in ("two", "three")]
        builds = build_pool.build(*candidates)
        assert [each.verdict for each in builds] == [None, None]
        return [each.cached for each in builds], list(zip(candidates, builds))

    assert built(build_pool.folder)[0] == [False, False]
    code = build_pool.folder / "two.cpp"
    code.write_text(CODE.format(name="two", times=10))
    cached, (two, _) = built(build_pool.folder)
    assert cached == [False, True] and opened(*two) == 20
    code.write_text(CODE.format(name="two", times=1))
    assert built(build_pool.folder)[0] == [True, True]
    moved = build_pool.folder.parent / "moved"
    build_pool.folder.rename(moved)
    cached, pairs = built(moved)
    assert cached == [True, True] and [opened(*pair) for pair in pairs] == [2, 3]


LINKED = '''
from pathlib import Path

import torch
from torch.utils.cpp_extension import load_inline

HERE = Path(__file__).parent
SOURCE = r"""
#include <Python.h>
extern "C" int factor();
extern "C" const char table[];
__asm__(".section .rodata\\ntable: .incbin \\"TABLE\\"\\n.text");
static PyObject* of_all(PyObject*, PyObject*) { return PyLong_FromLong(factor() * TIMES * (table[0] - '0')); }
static PyMethodDef methods[] = {{"factor", of_all, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "linked", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
extern "C" PyObject* PyInit_linked() { return PyModule_Create(&module); }
""".replace("TABLE", str(HERE / "table.bin"))
extension = load_inline(
    "linked", SOURCE, extra_cflags=[f"@{HERE}/flags.txt"], extra_ldflags=[f"-L{HERE}", "-lfactor"],
    no_implicit_headers=True,
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * extension.factor()
'''


def put_library(folder, factor):
    source = folder.parent / "factor.cpp"
    source.write_text(f'extern "C" int factor() {{ return {factor}; }}')
    subprocess.run(["g++", "-fPIC", "-c", source, "-o", folder.parent / "factor.o"], check=True)
    (folder / "libfactor.a").unlink(missing_ok=True)
    subprocess.run(["ar", "rcs", folder / "libfactor.a", folder.parent / "factor.o"], check=True)


@needs_cxx
@pytest.mark.timeout(300)
def test_what_no_compiler_tells_of_counts_too(new_pool):
    """A library that is linked, a file of flags, and data that an assembler takes in."""
    build_pool = new_pool("linked")
    candidate = build_pool.write("linked", LINKED)
    changes = {
        "library": lambda: put_library(build_pool.folder, 3),
        "flags": lambda: (build_pool.folder / "flags.txt").write_text("-O0 -DTIMES=5"),
        "data": lambda: (build_pool.folder / "table.bin").write_bytes(b"7"),
    }
    put_library(build_pool.folder, 2)
    (build_pool.folder / "flags.txt").write_text("-O0 -DTIMES=1")
    (build_pool.folder / "table.bin").write_bytes(b"1")

    def built():
        (build,) = build_pool.build(candidate)
        assert build.verdict is None, build.verdict
        return build.cached, opened(candidate, build)

    assert [built(), built()] == [(False, 2), (True, 2)]
    found = []
    for change in changes.values():
        change()
        found.append(built())
    assert found == [(False, 3), (False, 15), (False, 105)]
    assert built() == (True, 105)
    for manifest in build_pool.cache.root.glob("entries/*/manifest.json"):
        names = set(json.loads(manifest.read_text())["files"])
        assert names == {"flags.txt", "libfactor.a", "table.bin"}, "and none of PyTorch's, which the linker is given too"
