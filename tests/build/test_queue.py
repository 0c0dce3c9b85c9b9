"""Candidates built for real, through builders behind the sandbox: two that compile, and the ways to fail."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import re
import textwrap
import time
from dataclasses import replace

import pytest

from harness.build.queue import BuildQueue, builders_at_once
from harness.build.toolchain import find_toolchain
from harness.model.verdict import ReasonCode, Status
from harness.protocol.extension_key import extension_key

from .conftest import CPP_CANDIDATE, CUDA_CANDIDATE, PLAIN_CANDIDATE, SETTINGS, needs_cxx, needs_nvcc, needs_triton

pytestmark = pytest.mark.processes


def model_with(statement: str) -> str:
    return f"import os, sys, time\nimport torch\n{textwrap.dedent(statement)}\n{PLAIN_CANDIDATE}"


@pytest.fixture
def new_queue(monkeypatch):
    """`new_queue(build_pool, candidate, ...)`: a queue with as many `builders`."""

    def make(build_pool, *candidates, builders: int = 2) -> BuildQueue:
        monkeypatch.setattr("harness.build.queue.builders_at_once", lambda: builders)
        return BuildQueue(candidates, find_toolchain(None), build_pool.cache, SETTINGS)

    return make


@pytest.mark.slow
@needs_cxx
def test_a_cpp_candidate_is_built_once_and_its_extension_loads(built_pool):
    (build,) = built_pool.build(built_pool.write("doubled", CPP_CANDIDATE))
    assert build.cached and build.verdict is None
    assert build.built_by.startswith(("g++", "clang", "c++")) and build.arch is None
    (extension,) = build.extensions
    assert extension.module_name == "doubled_extension" and extension.is_python_module
    import torch  # and with it the libraries that the extension is linked to

    loader = importlib.machinery.ExtensionFileLoader(extension.module_name, str(extension.path))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_file_location(extension.module_name, extension.path, loader=loader)
    )
    loader.exec_module(module)
    assert module.doubled(torch.ones(3)).tolist() == [2, 2, 2]


@pytest.mark.parametrize("gently", [False, True])
def test_beside_another_run_that_is_timing_a_builder_comes_behind_all_other_sessions(build_pool, gently):
    """Several at a time, since the machine lets a session's weight be set ten times a second."""
    if not os.path.exists("/proc/self/autogroup"):
        pytest.skip("sessions count for nothing here")
    source = model_with("""
        raise RuntimeError(f"nice {os.nice(0)}, {open('/proc/self/autogroup').read()}")
    """)
    candidates = [build_pool.write(f"tells_{letter}", f"{source}# {letter}\n") for letter in "abcd"]
    with BuildQueue(candidates, find_toolchain(None), build_pool.cache, SETTINGS, gently=gently) as queue:
        reasons = [queue.result(each).verdict.reason for each in candidates]
    for reason in reasons:
        assert re.search(rf"nice 19, /autogroup-\d+ nice {19 if gently else 0}\b", reason), reason


@pytest.mark.slow
@needs_cxx
def test_the_manifest_is_keyed_by_the_call_that_the_worker_will_make(built_pool):
    candidate = built_pool.write("doubled", CPP_CANDIDATE)
    (build,) = built_pool.build(candidate)
    source = CPP_CANDIDATE.split('r"""')[1].split('"""')[0]
    key = extension_key("load_inline", {
        "name": "doubled_extension", "cpp_sources": [source], "functions": ["doubled"],
        "extra_cflags": ["-O0"],
    })
    assert set(build.manifest) == {key}
    assert set(build.manifest[key]) == {"module_name", "path", "is_python_module"}


@pytest.mark.slow
@needs_nvcc
def test_a_cuda_candidate_without_a_gpu_is_compiled_and_reported(built_pool):
    (build,) = built_pool.build(built_pool.write("reversed", CUDA_CANDIDATE))
    assert build.cached
    assert build.verdict.status is Status.COMPILED and build.verdict.reason_code is ReasonCode.NO_GPU
    assert "sm_90a" in build.verdict.reason and "8 KB shared" in build.verdict.reason
    (kernel,) = build.kernels
    assert kernel.kernel == "reversed_kernel" and kernel.shared_bytes == 8192
    assert build.arch == "sm_90a" and build.built_by.startswith("nvcc ")
    assert build.extensions == ()


@needs_nvcc
def test_a_cuda_syntax_error_is_shown_on_the_candidates_own_line(build_pool):
    broken = CUDA_CANDIDATE.replace("in[threadIdx.x];", "inn[threadIdx.x];")
    candidate = build_pool.write("broken", broken)
    (build,) = build_pool.build(candidate)
    line = next(number for number, text in enumerate(broken.splitlines(), 1) if "inn[" in text)
    assert build.verdict.reason_code is ReasonCode.COMPILE_ERROR
    assert build.verdict.reason.splitlines() == [
        f'broken.py:{line}: identifier "inn" is undefined',
        f"{line:5d} |   tile[threadIdx.x] = inn[threadIdx.x];",
        "      |                       ^",
    ]


@needs_cxx
def test_a_cpp_error_is_shown_on_the_candidates_own_line_and_is_not_kept(build_pool):
    broken = CPP_CANDIDATE.replace("#include <torch/extension.h>\n", "").replace(
        "torch::Tensor doubled(const torch::Tensor& x) { return x * 2; }", "int doubled(int x) { return y; }"
    ).replace('functions="doubled"', "no_implicit_headers=True")
    candidate = build_pool.write("broken", broken)
    (build,) = build_pool.build(candidate)
    assert build.verdict.reason_code is ReasonCode.COMPILE_ERROR
    assert build.verdict.reason.startswith("broken.py:6: ‘y’ was not declared in this scope")
    assert build.headers == "stock", "which it was tried with last"
    assert "ninja" not in build.verdict.reason
    assert build_pool.cache.lookup(build_pool.cache.key(candidate, find_toolchain(None))) is None


@needs_cxx
def test_a_function_that_nothing_defines_is_named(build_pool):
    headers = "#include <Python.h>\nint helper(int);"
    source = CPP_CANDIDATE.replace("#include <torch/extension.h>", headers).replace(
        "torch::Tensor doubled(const torch::Tensor& x) { return x * 2; }",
        'extern "C" PyObject* PyInit_doubled_extension() { return helper(1) ? nullptr : nullptr; }',
    ).replace('functions="doubled"', "no_implicit_headers=True")
    (build,) = build_pool.build(build_pool.write("undefined", source))
    assert build.verdict.reason_code is ReasonCode.COMPILE_ERROR
    assert "nothing defines helper" in build.verdict.reason


def test_a_plain_candidate_is_imported_and_kept(build_pool):
    candidate = build_pool.write("plain", PLAIN_CANDIDATE)
    (first,) = build_pool.build(candidate)
    (second,) = build_pool.build(candidate)
    assert first.verdict is None and first.built_by == "python" and not first.cached
    assert second.verdict is None and second.cached and second.extensions == ()


NOT_IMPORTED = Status.BUILD_FAILED, ReasonCode.IMPORT_ERROR
FAILURES = {
    "raises": ("raise ValueError('a reason')", *NOT_IMPORTED, "ValueError: a reason"),
    "missing_module": ("import no_such_module_here", *NOT_IMPORTED, "missing_module.py:3"),
    "leaves": ("os._exit(0)", Status.CRASHED, ReasonCode.EXITED, "exited with status 0"),
    "falls": ("import ctypes; ctypes.string_at(0)", Status.CRASHED, ReasonCode.SIGNAL, "killed by SIGSEGV"),
}


@pytest.fixture(scope="module")
def failures(tmp_path_factory):
    from harness.build.cache import Cache

    from .conftest import BuildPool

    folder = tmp_path_factory.mktemp("failures")
    build_pool = BuildPool(folder, Cache(folder / "cache"))
    candidates = [build_pool.write(name, model_with(case[0])) for name, case in FAILURES.items()]
    return dict(zip(FAILURES, build_pool.build(*candidates), strict=True))


@pytest.mark.parametrize("name", FAILURES)
def test_a_candidate_that_cannot_be_imported_costs_its_own_row(failures, name):
    _, status, code, words = FAILURES[name]
    verdict = failures[name].verdict
    assert (verdict.status, verdict.reason_code) == (status, code)
    assert words in verdict.reason


def test_a_model_that_is_no_module_is_told_apart(build_pool):
    (build,) = build_pool.build(build_pool.write("function", "import torch\n\ndef f(): pass\n\nModelNew = f\n"))
    assert build.verdict.reason_code is ReasonCode.NO_MODEL_NEW
    assert "ModelNew is no class that derives from nn.Module" in build.verdict.reason


def test_a_candidate_that_needs_a_gpu_while_it_is_imported_is_left_to_the_worker_where_there_is_one(build_pool):
    candidate = build_pool.write("needs_gpu", model_with("raise RuntimeError('No CUDA GPUs are available')"))
    build_pool.device_arch = "9.0a"
    (build,) = build_pool.build(candidate)
    assert build.verdict is None
    assert "needs a GPU while it is imported" in build.warnings


def test_where_there_is_no_gpu_such_a_candidate_is_skipped(build_pool):
    candidate = build_pool.write("needs_gpu", model_with("raise RuntimeError('No CUDA GPUs are available')"))
    (build,) = build_pool.build(candidate)
    assert (build.verdict.status, build.verdict.reason_code) == (Status.SKIPPED, ReasonCode.NO_GPU)
    assert "it needs a GPU while it is imported (RuntimeError: No CUDA GPUs are available)" in build.verdict.reason


@pytest.mark.parametrize(("hangs", "spent"), [("time.sleep(100)", "[01]"), ("while True: pass", "[1-4]")])
def test_a_build_that_hangs_is_stopped_and_told_with_what_it_had_of_the_processor(build_pool, hangs, spent):
    build_pool.settings = replace(SETTINGS, build_timeout_s=4)
    began = time.monotonic()
    (build,) = build_pool.build(build_pool.write("hangs", model_with(hangs)))
    assert build.verdict.reason_code is ReasonCode.BUILD_TIMEOUT
    assert re.fullmatch(f"not built after 4 s, in which it had {spent} s of processor time, and stopped", build.verdict.reason)
    assert time.monotonic() - began < 20


def test_an_import_that_hangs_is_stopped_long_before_a_build_would_be(build_pool):
    build_pool.settings = replace(SETTINGS, load_timeout_s=4)
    (build,) = build_pool.build(build_pool.write("hangs", model_with("time.sleep(1000)")))
    assert (build.verdict.status, build.verdict.reason_code) == (Status.TIMED_OUT, ReasonCode.LOAD_TIMEOUT)
    assert build.verdict.reason == "its import did not end within 4 s, compilers not counted, and was stopped"


def test_a_fault_of_the_file_is_a_failed_build_without_a_process(build_pool):
    candidate = build_pool.write("broken", "def f(:\n")
    began = time.monotonic()
    (build,) = build_pool.build(candidate)
    assert build.verdict.reason_code is ReasonCode.SYNTAX_ERROR and build.verdict.reason == candidate.fault
    assert time.monotonic() - began < 1


def test_without_nvcc_a_cuda_candidate_is_skipped_with_the_command_that_brings_it(build_pool):
    (build,) = build_pool.build(build_pool.write("reversed", CUDA_CANDIDATE), nvcc_path=None)
    assert build.verdict.status is Status.SKIPPED and build.verdict.reason_code is ReasonCode.NO_NVCC
    assert "pip install nvidia-cuda-nvcc" in build.verdict.reason


def test_without_triton_a_triton_candidate_is_skipped_with_the_command_that_brings_it(build_pool, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "triton" else find(name))
    (build,) = build_pool.build(build_pool.write("tile", "import triton\n" + PLAIN_CANDIDATE))
    assert build.verdict.status is Status.SKIPPED and build.verdict.reason_code is ReasonCode.NO_TRITON
    assert build.verdict.reason.endswith("pip install -c constraints.txt -e '.[triton]'")


@needs_triton
@pytest.mark.parametrize("asks", [
    "import triton\nsms = torch.cuda.get_device_properties('cuda').multi_processor_count\nassert sms > 100",
    "import triton\nassert triton.runtime.driver.active.utils.get_device_properties(0)['multiprocessor_count'] > 100",
    "import triton\nassert torch.ones(1).is_cuda",
])
def test_a_triton_candidate_is_imported_without_a_gpu_as_if_there_were_one(build_pool, asks):
    (build,) = build_pool.build(build_pool.write("tile", model_with(asks)))
    assert build.verdict is None and build.built_by == "triton"


@needs_triton
def test_a_triton_candidate_that_uses_a_gpu_while_it_is_imported_is_skipped_and_a_mistake_is_its_own(build_pool):
    uses, mistaken = build_pool.build(
        build_pool.write("uses", model_with("import triton\nx = torch.ones(1, device='cuda')")),
        build_pool.write("mistaken", model_with("import triton\nx = undefined_name")),
    )
    assert (uses.verdict.status, uses.verdict.reason_code) == (Status.SKIPPED, ReasonCode.NO_GPU)
    assert (mistaken.verdict.status, mistaken.verdict.reason_code) == (Status.BUILD_FAILED, ReasonCode.IMPORT_ERROR)


def test_what_is_built_of_a_file_that_was_saved_again_is_not_kept_as_what_was_read(build_pool):
    candidate = build_pool.write("plain", PLAIN_CANDIDATE)
    candidate.path.write_text(f"raise ValueError('of the next text')\n{PLAIN_CANDIDATE}")
    (build,) = build_pool.build(candidate)
    assert (build.verdict.status, build.verdict.reason_code) == (Status.SKIPPED, ReasonCode.SAVED_MEANWHILE)
    assert "plain.py was saved again" in build.verdict.reason
    candidate.path.write_text(PLAIN_CANDIDATE)
    (build,) = build_pool.build(candidate)
    assert build.verdict is None and not build.cached


def test_what_is_added_is_built_beside_what_came_before(build_pool, new_queue):
    hangs = build_pool.write("hangs", model_with("time.sleep(100)"))
    plain = build_pool.write("plain", PLAIN_CANDIDATE)
    with new_queue(build_pool, hangs, builders=2) as queue:
        queue.add([plain])
        assert queue.result(plain).verdict is None
        assert not queue.is_ready(hangs) and not queue.is_idle


def test_while_it_is_paused_what_has_begun_is_built_and_nothing_else(build_pool, new_queue):
    begun = build_pool.write("begun", model_with("time.sleep(2)"))
    plain = build_pool.write("plain", PLAIN_CANDIDATE)
    with new_queue(build_pool, begun, plain, builders=1) as queue:
        queue.wait_for_one([begun], timeout_s=0.5)
        queue.is_paused = True
        assert not queue.is_idle and not queue.is_ready(begun)
        queue.wait_until_idle()
        assert queue.is_idle and queue.is_ready(begun) and not queue.is_ready(plain)
        queue.wait_for_one([plain], timeout_s=0.5)
        assert not queue.is_ready(plain)
        queue.is_paused = False
        assert queue.result(plain).verdict is None and queue.is_idle


def test_closing_a_paused_queue_ends_it(build_pool, new_queue):
    plain = build_pool.write("plain", PLAIN_CANDIDATE)
    with new_queue(build_pool, builders=1) as queue:
        queue.is_paused = True
        queue.add([plain])
        assert queue.is_idle and not queue.is_ready(plain)


def test_a_build_that_is_given_up_ends_and_leaves_its_builder_to_what_comes_after_it(build_pool, new_queue):
    hangs = build_pool.write("hangs", model_with("time.sleep(100)"))
    plain = build_pool.write("plain", PLAIN_CANDIDATE)
    with new_queue(build_pool, hangs, plain, builders=1) as queue:
        queue.wait_for_one([plain], timeout_s=0.5)
        assert not queue.is_ready(plain)
        queue.give_up(hangs)
        queue.wait_for_one([plain], timeout_s=30)
        assert queue.result(plain).verdict is None and queue.is_idle


def test_one_that_was_given_before_is_looked_at_anew(build_pool, new_queue):
    (build_pool.folder / "part.py").write_text("raise ValueError('unfinished')")
    beside = "sys.path.insert(0, os.path.dirname(__file__))"
    candidate = build_pool.write("plain", model_with(f"{beside}\nimport part"))
    with new_queue(build_pool, candidate) as queue:
        assert queue.result(candidate).verdict.status is Status.BUILD_FAILED
        (build_pool.folder / "part.py").write_text("")
        queue.add([candidate])
        assert queue.result(candidate).verdict is None


def test_closing_the_queue_ends_what_is_being_built(build_pool):
    candidate = build_pool.write("hangs", model_with("time.sleep(100)"))
    queue = BuildQueue([candidate], find_toolchain(None), build_pool.cache, SETTINGS)
    time.sleep(0.5)
    began = time.monotonic()
    queue.close()
    assert time.monotonic() - began < 10
    assert not list((build_pool.cache.root / "staging").iterdir())


@pytest.mark.parametrize(("gently", "builders"), [(False, 4), (True, 2)])
def test_beside_another_run_that_is_timing_half_as_many_builders_run(build_pool, monkeypatch, gently, builders):
    monkeypatch.setattr("harness.build.queue.builders_at_once", lambda: 4)
    candidates = [build_pool.write(f"number_{each}", f"{PLAIN_CANDIDATE}\n# {each}\n") for each in range(6)]
    queue = BuildQueue(candidates, find_toolchain(None), build_pool.cache, SETTINGS, gently=gently)
    try:
        assert queue._pool._max_workers == builders
    finally:
        queue.close()


def test_at_least_one_builder_runs_however_small_the_machine():
    assert builders_at_once() >= 1


def test_a_full_disk_costs_the_candidate_and_not_the_run(build_pool, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(build_pool.cache), "store", full)
    (build,) = build_pool.build(build_pool.write("plain", PLAIN_CANDIDATE))
    assert build.verdict.status is Status.BUILD_FAILED
    assert "No space left on device" in build.verdict.reason
