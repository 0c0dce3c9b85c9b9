"""Extensions that a candidate asks for as it runs: built by what its worker tells of the calls, and kept for later runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.build.builder_launcher import Builders
from harness.build.late_requests import asked_before, build_asked, may_go_on
from harness.build.product import Build
from harness.build.toolchain import find_toolchain
from harness.model.verdict import ReasonCode, Status
from harness.protocol.extension_key import extension_key
from tests.build.conftest import PLAIN_CANDIDATE, SETTINGS, needs_cxx

pytestmark = pytest.mark.processes

# Tried with PyTorch's headers of the two kinds, since it speaks of PyTorch, and includes neither: they take seconds.
BROKEN = {"name": "broken", "cpp_sources": "int one() { return +; }  // torch::", "no_implicit_headers": True}
MODULE = """#include <Python.h>  // torch::
#define INIT_OF(name) PyInit_##name
#define INIT(name) INIT_OF(name)
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "made", nullptr, 0, nullptr};
PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() { return PyModule_Create(&module); }
"""
ONE = {"name": "one", "cpp_sources": MODULE, "extra_cflags": ["-O0"], "no_implicit_headers": True}


def inline(arguments):
    return {"kind": "load_inline", "arguments": arguments, "texts": {}}


@pytest.fixture
def asked(build_pool):
    """`asked(call, …)`: what came of asking for them in a worker of a candidate whose import builds nothing."""
    candidate, toolchain = build_pool.write("plain", PLAIN_CANDIDATE), find_toolchain(None)
    builders = Builders(toolchain, SETTINGS.build_timeout_s, SETTINGS.load_timeout_s, None, {})
    key, place = build_pool.cache.key(candidate, toolchain), candidate.path.resolve().parent

    def asked(*calls):
        return build_asked(candidate, Build(None), calls, builders, build_pool.cache, 1)

    asked.kept = lambda: asked_before(Build(None), build_pool.cache, key, place)
    return asked


@pytest.mark.slow
@needs_cxx
def test_it_is_built_under_the_key_that_the_next_worker_asks_for_and_found_by_a_later_run(asked, tmp_path):
    source = tmp_path / "gone" / "two.cpp"  # in the /tmp of a worker that is no more
    call = {"kind": "load", "arguments": {"name": "two", "sources": [str(source)]}, "texts": {str(source): MODULE}}
    build, verdict = asked(inline(ONE), call)
    assert verdict is None
    source.parent.mkdir()
    source.write_text(MODULE)
    keys = {extension_key("load_inline", {**ONE, "name": "another"}), extension_key("load", call["arguments"])}
    assert set(build.manifest) == keys
    assert all(Path(entry["path"]).is_file() for entry in build.manifest.values())
    assert asked.kept().manifest == build.manifest


@pytest.mark.slow
@needs_cxx
def test_what_no_compiler_takes_is_told_and_kept_from_the_next_worker(asked):
    build, verdict = asked(inline(BROKEN))
    assert (verdict.status, verdict.reason_code) == (Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR) and may_go_on(verdict)
    assert build.failed == (extension_key("load_inline", BROKEN),) and not build.extensions
    assert asked.kept() == Build(None)


def test_a_call_that_is_none_of_pytorchs_is_the_candidates_failure(asked):
    _, verdict = asked(inline({"name": "odd", "no_such_argument": 1}))
    assert verdict.status is Status.BUILD_FAILED


def test_of_the_same_extension_the_one_that_its_import_built_counts(build_pool):
    first = Build(None, seconds=2.0, warnings="first", failed=("a",))
    more = Build(None, seconds=3.0, warnings="more", failed=("a", "b"), headers="stock", built_by="g++ 12")
    both = first.and_also(more)
    assert (both.seconds, both.warnings, both.failed) == (5.0, "first\nmore", ("a", "b"))
    assert (both.headers, both.built_by) == ("stock", "g++ 12")


@pytest.mark.slow
@needs_cxx
def test_two_that_no_compiler_takes_are_both_told(asked):
    """Each of the two says that it begins again, with PyTorch's own headers."""
    others = {**BROKEN, "cpp_sources": "int one() { return -; }  // torch::"}
    build, verdict = asked(inline(BROKEN), inline(others))
    assert verdict.status is Status.BUILD_FAILED, verdict.reason
    assert set(build.failed) == {extension_key("load_inline", each) for each in (BROKEN, others)}
