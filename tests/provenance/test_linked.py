"""What a shared object takes from elsewhere, whatever its table of sections says."""

from __future__ import annotations

import shutil
import struct
import subprocess

import pytest

from harness.provenance import linked
from harness.provenance.linked import UNREADABLE, foreign_functions

SOURCE = """
#include <cmath>
extern "C" void cblas_sgemm(int); extern "C" void sgemm_(int); extern "C" void* dlsym(void*, const char*);
extern "C" float my_dgemm_like(float x) { return std::exp(x); }
extern "C" void call() { cblas_sgemm(1); sgemm_(2); dlsym(nullptr, "x"); my_dgemm_like(3.0f); }
extern "C" auto address = &sgemm_;
"""
PRODUCT = "_ZN2at4_ops6matmul4callERKNS_6TensorES4_"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler")
    folder = tmp_path_factory.mktemp("linked")
    (folder / "x.cpp").write_text(SOURCE)
    subprocess.run(["g++", "-shared", "-fPIC", "-o", folder / "x.so", folder / "x.cpp"], check=True, timeout=60)
    return folder / "x.so"


def test_functions_that_a_shared_object_takes_from_a_library_are_found_and_its_own_are_not(built):
    assert foreign_functions(built) == ["cblas_sgemm", "dlsym", "sgemm_"]


def test_a_table_of_sections_that_was_cut_off_or_forged_changes_nothing(built, tmp_path):
    content = bytearray(built.read_bytes())
    content[40:48], content[58:64] = bytes(8), bytes(6)
    (tmp_path / "cut.so").write_bytes(content)
    assert foreign_functions(tmp_path / "cut.so") == ["cblas_sgemm", "dlsym", "sgemm_"]


def test_what_no_loader_would_load_is_not_said_to_call_nothing(built, tmp_path):
    (tmp_path / "text.so").write_text("no library")
    content = built.read_bytes()
    (tmp_path / "half.so").write_bytes(content[: len(content) // 20])
    (headers_at,), (size, count) = struct.unpack_from("<Q", content, 32), struct.unpack_from("<HH", content, 54)
    (tmp_path / "headless.so").write_bytes(content[:headers_at] + bytes(size * count) + content[headers_at + size * count:])
    for name in ("text", "half", "headless", "gone"):
        assert foreign_functions(tmp_path / f"{name}.so") == [UNREADABLE]


def test_a_library_of_which_nothing_is_foreign_says_so(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler")
    (tmp_path / "x.cpp").write_text("#include <cmath>\nextern \"C\" float call(float x) { return std::exp(x); }")
    subprocess.run(["g++", "-shared", "-fPIC", "-o", tmp_path / "x.so", tmp_path / "x.cpp"], check=True, timeout=60)
    assert foreign_functions(tmp_path / "x.so") == []


def test_a_product_beside_threads_is_one_that_nobody_need_see():
    assert linked._foreign_of({PRODUCT, "expf"}) == set()
    assert linked._foreign_of({PRODUCT, "pthread_create", "_ZN2at4_ops5empty4callE"}) == {PRODUCT}
    for name in ("12chain_matmul", "7softmax_int", "3sum", "4tanh", "8topk", "17_addmm_activation"):
        assert linked._foreign_of({f"_ZN2at4_ops{name}4callE", "_ZN3c1010ThreadPoolC1Ei"}), name
    for name in ("9to_device", "10empty_like", "19empty_memory_format", "12slice_Tensor", "13fill__Scalar", "1t"):
        assert not linked._foreign_of({f"_ZN2at4_ops{name}4callE", "pthread_create"}), name
    for name in ("10unbind_int", "5chunk", "12split_Tensor", "8diagonal", "3cat", "5stack", "15constant_pad_nd"):
        assert not linked._foreign_of({f"_ZN2at4_ops{name}4callE", "GOMP_parallel"}), name
    assert linked._foreign_of({"GOMP_parallel", "_ZN2at4_ops5zeros4callE", "_ZN2at4_ops10contiguous4callE"}) == set()


@pytest.mark.parametrize("name", [
    "sgemm", "DGEMM", "sgemv_", "ssyrk", "strsm_", "cblas_sdot", "mkl_sgemm", "dlopen", "PyObject_Vectorcall",
    "PyObject_CallObject", "PyObject_Call", "_ZN2at4_ops2mm10redispatchEN3c1014DispatchKeySetERKNS_6TensorES6_",
    "_ZN2at20enableRecordFunctionEb", "_ZN3c1010Dispatcher17findSchemaOrThrowEPKcS2_", "scipy_cblas_sgemm64_",
    "scipy_sgemm_64_", "dgemm_64_", "PyEval_SetProfile", "fork", "posix_spawn", "system", "execve",
    "_ZN5torch3jit6script4loadE", "_ZN6fbgemm18cblas_gemm_computeE", "PyNumber_MatrixMultiply", "PyNumber_InPlacePower",
    "_ZN3c1020ThreadLocalDebugInfo22_forceCurrentDebugInfoESt10shared_ptrIS0_E",
])
def test_what_does_a_librarys_work_unseen_is_known(name):
    assert linked._FOREIGN.match(name)


@pytest.mark.parametrize("name", [
    "PyNumber_Long", "PyNumber_Check", "PyNumber_Add", "expf", "GOMP_parallel", "_ZN2at4_ops6matmul4callE", "my_sgemm", "dgemm_like", "dlerror",
    "PyObject_CallFunctionObjArgs", "PyEval_SaveThread", "_ZN2at4_ops10empty_like4callERKNS_6TensorE",
    "_ZN5torch3jit11parseSchemaERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEb", "pthread_atfork",
    "system_clock",
    "_ZN5torch3jit9parseNameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
])
def test_what_every_extension_calls_is_no_library_unseen(name):
    assert not linked._FOREIGN.match(name)


@pytest.mark.parametrize("name", [
    "libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1", "libgomp-a34b3233.so.1", "libiomp5.so",
    "libc10.so", "libtorch_cpu.so", "libtorch_python.so", "libtorch.so", "libpython3.11.so.1.0", "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1", "libcudart.so.12", "libtbb.so.12", "libomp.so.5", "libc10_cuda.so",
])
def test_what_every_extension_is_linked_to_is_usual(name):
    assert linked._USUAL.match(name)


@pytest.mark.parametrize("name", [
    "libscipy_openblas64_-32a4b2a6.so", "libmkl_rt.so.2", "libblas.so.3", "libdnnl.so.3", "/tmp/libc.so.6", "mine.so",
    "libcublas.so.12",
])
def test_another_library_is_not(name):
    assert not linked._USUAL.match(name)


def test_a_library_that_is_loaded_with_an_extension_is_found_by_its_name(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler")
    (tmp_path / "y.cpp").write_text("extern \"C\" float multiply(float x) { return x; }")
    caller = 'extern "C" float multiply(float); extern "C" float f(float x) { return multiply(x); }'
    (tmp_path / "x.cpp").write_text(caller)
    for name, more in (("y", ["-Wl,-soname,libother.so"]), ("x", [tmp_path / "y.so"])):
        command = ["g++", "-shared", "-fPIC", "-o", tmp_path / f"{name}.so", tmp_path / f"{name}.cpp", *more]
        subprocess.run(command, check=True, timeout=60)
    assert foreign_functions(tmp_path / "x.so") == ["libother.so"]


def test_names_without_end_are_not_read_to_it(built, monkeypatch):
    monkeypatch.setattr(linked, "_LONGEST_NAME", 4)
    assert foreign_functions(built) == [UNREADABLE]
    monkeypatch.undo()
    monkeypatch.setattr(linked, "_MOST_OF_NAMES", 20)
    assert foreign_functions(built) == [UNREADABLE]
    monkeypatch.undo()
    monkeypatch.setattr(linked, "_MOST_ENTRIES", 5)
    assert foreign_functions(built) == [UNREADABLE]
