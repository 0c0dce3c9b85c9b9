"""Candidates that build while ModelNew is constructed: with what it is given, and again where that is something else."""

from __future__ import annotations

import pytest

from harness.build.queue import BuildQueue
from harness.build.toolchain import find_toolchain

from .conftest import PLAIN_CANDIDATE, SETTINGS, needs_cxx

pytestmark = pytest.mark.processes

IN_INIT = '''
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <Python.h>
#define JOINED(one, other) one##other
#define INIT_OF(name) JOINED(PyInit_, name)
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "sized", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
extern "C" PyObject* INIT_OF(TORCH_EXTENSION_NAME)() { int n[N]; (void)n; return PyModule_Create(&module); }
"""


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        load_inline("sized", SOURCE, extra_cflags=[f"-DN={n}"], no_implicit_headers=True)
'''
SIZED_REFERENCE = """
N = 4


class Model:
    def __init__(self, n):
        self.n = n


def get_init_inputs():
    return [N + EXTRA]
"""


@pytest.fixture
def built_for(build_pool):
    """`built_for(candidate, extra, *sizes)`: its build, where ModelNew is given each size and so much more."""
    reference = build_pool.folder.parent / "reference.py"

    def build(candidate, extra, *sizes):
        reference.write_text(SIZED_REFERENCE.replace("EXTRA", str(extra)))
        init = {"reference": str(reference), "sizes": [{"N": each} for each in sizes]}
        with BuildQueue([candidate], find_toolchain(None), build_pool.cache, SETTINGS, problem_init=init) as queue:
            return queue.result(candidate)

    return build


@needs_cxx
def test_what_is_built_in_init_is_built_for_each_size_and_anew_for_other_arguments(build_pool, built_for):
    candidate = build_pool.write("sized", IN_INIT)
    first = built_for(candidate, 0, 5, 6)
    assert first.verdict is None and len(first.extensions) == 2 and first.is_of_init
    assert built_for(candidate, 0, 5, 6).cached
    other = built_for(candidate, 1, 5, 6)
    assert not other.cached and not {*first.manifest} == {*other.manifest}
    assert len({*first.manifest} & {*other.manifest}) == 1, "that of 6 = 5 + 1"
    assert len(built_for(candidate, 1, 5).extensions) == 1
    assert built_for(candidate, 0, 5, 6).cached, "both are kept"


def test_what_is_built_at_import_is_one_for_all_problems(build_pool, built_for):
    plain = build_pool.write("plain", PLAIN_CANDIDATE)
    assert not built_for(plain, 0, 5).is_of_init
    assert built_for(plain, 1, 6).cached
