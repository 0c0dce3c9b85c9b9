"""What a shared object takes from elsewhere, whatever its table of sections says."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from harness.attribution import linked_symbols
from harness.attribution.linked_symbols import UNREADABLE, foreign_functions
from harness.attribution.permitted_symbols import is_permitted, scope_of

pytestmark = pytest.mark.processes

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


@pytest.mark.parametrize("threads", [
    "pthread_create", "_ZN2at18TensorIteratorBase8for_eachEN3c1012function_refIFvPPcPKlllEEEl",
    "_ZN2at18TensorIteratorBase15parallel_reduceEN3c1012function_refIFvRS0_EEE",
])
def test_a_product_beside_threads_is_one_that_nobody_need_see(threads):
    assert linked_symbols._foreign_of({PRODUCT, "expf"}) == set()
    assert linked_symbols._foreign_of({PRODUCT, threads, "_ZN2at4_ops5empty4callE"}) == {PRODUCT}


def test_threads_of_one_extension_are_beside_the_products_of_another(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler")
    declared = "namespace at {{ class Tensor; namespace _ops {{ struct matmul {{ static void {}; }}; }} }}\n"
    call = "call(const Tensor&, const Tensor&)"
    (tmp_path / "product.cpp").write_text(
        declared.format(call) + "void f(at::Tensor& x) { at::_ops::matmul::call(x, x); }"
    )
    (tmp_path / "thread.cpp").write_text("#include <pthread.h>\nauto address = &pthread_create;")
    for name in ("product", "thread"):
        command = ["g++", "-shared", "-fPIC", "-o", tmp_path / f"{name}.so", tmp_path / f"{name}.cpp"]
        subprocess.run(command, check=True, timeout=60)
    product, thread = tmp_path / "product.so", tmp_path / "thread.so"
    assert foreign_functions(product) == foreign_functions(thread) == []
    assert foreign_functions(product, thread) == [PRODUCT]
    for name in ("12chain_matmul", "7softmax_int", "3sum", "4tanh", "8topk", "17_addmm_activation"):
        assert linked_symbols._foreign_of({f"_ZN2at4_ops{name}4callE", "_ZN3c1010ThreadPoolC1Ei"}), name
    for name in ("9to_device", "10empty_like", "19empty_memory_format", "12slice_Tensor", "12fill__Scalar", "1t"):
        assert not linked_symbols._foreign_of({f"_ZN2at4_ops{name}4callE", "pthread_create"}), name
    for name in ("10unbind_int", "5chunk", "12split_Tensor", "8diagonal", "3cat", "5stack", "15constant_pad_nd"):
        assert not linked_symbols._foreign_of({f"_ZN2at4_ops{name}4callE", "GOMP_parallel"}), name
    assert linked_symbols._foreign_of({"GOMP_parallel", "_ZN2at4_ops5zeros4callE", "_ZN2at4_ops10contiguous4callE"}) == set()


@pytest.mark.parametrize("name", [
    "sgemm", "DGEMM", "sgemv_", "ssyrk", "strsm_", "cblas_sdot", "mkl_sgemm", "dlopen", "PyObject_Vectorcall",
    "PyObject_CallObject", "PyObject_Call", "_ZN2at4_ops2mm10redispatchEN3c1014DispatchKeySetERKNS_6TensorES6_",
    "_ZN2at20enableRecordFunctionEb", "_ZN3c1010Dispatcher17findSchemaOrThrowEPKcS2_", "scipy_cblas_sgemm64_",
    "scipy_sgemm_64_", "dgemm_64_", "PyEval_SetProfile", "fork", "posix_spawn", "system", "execve",
    "_ZN5torch3jit6script4loadE", "_ZN6fbgemm18cblas_gemm_computeE", "PyNumber_MatrixMultiply", "PyNumber_InPlacePower",
    "_ZN3c1020ThreadLocalDebugInfo22_forceCurrentDebugInfoESt10shared_ptrIS0_E", "my_sgemm", "dgemm_like", "matmul",
    "PyCapsule_Import", "PyImport_ImportModule", "PySys_GetObject", "mmap", "mprotect", "memfd_create", "fopen", "open64", "read",
    "syscall", "dladdr", "getauxval", "_r_debug", "xnn_run_operator", "pthreadpool_compute_1d", "GOMP_target_ext",
    "_ZNSt14basic_ifstreamIcSt11char_traitsIcEEC1EPKcSt13_Ios_Openmode", "_ZNSt10filesystem4pathC1Ev", "_Z6matmulv",
    "_ZN2at3cpu2mmERKNS_6TensorES3_", "_ZN2at6native6matmulERKNS_6TensorES3_", 
    "_ZN2at10redispatch2mmEN3c1014DispatchKeySetERKNS_6TensorES5_", "_ZN2at4meta2mmERKNS_6TensorES3_",
    "_ZN5torch2nn10LinearImpl7forwardERKN2at6TensorE", "_ZTVN5torch2nn10LinearImplE", "aoti_torch_cpu_mm_out",
    "aoti_torch_call_dispatcher", "_ZN3c1014OperatorHandle9callBoxedEv", "_ZN5torch8autograd6Engine7executeEv",
    "_ZN5torch8autograd12VariableType2mmEv", "_ZN2at14RecordFunction3endEv", "_ZN3c1017impl13OperatorEntryE",
])
def test_what_does_a_librarys_work_unseen_is_not_permitted(name):
    assert not is_permitted(name)


@pytest.mark.parametrize("name", [
    "PyNumber_Long", "PyNumber_Check", "PyNumber_Add", "expf", "GOMP_parallel", "_ZN2at4_ops6matmul4callE",
    "PyObject_CallFunctionObjArgs", "PyEval_SaveThread", "_ZN2at4_ops10empty_like4callERKNS_6TensorE",
    "_ZN5torch3jit11parseSchemaERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEb", "pthread_atfork",
    "_ZN5torch3jit9parseNameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNK3c106SymInt9guard_intEPKcl", "_ZNK2at10TensorBase8data_ptrIfEEPT_v", "_ZN2at6detail9empty_cpuEN3c108ArrayRefIlEE",
    "_ZNR5torch7Library5_implEPKcONS_11CppFunctionENS_17_RegisterOrVerifyE", "_ZTVN5torch8autograd4NodeE", "_ZdlPvm", "_ZTIPKc",
    "_ZNSt6thread15_M_start_threadEv", "_ZTVN10__cxxabiv117__class_type_infoE", "_ZN3c10lsERSoRKNS_6DeviceE", "sqrtf", "cosl",
    "_ZN3c106detail14torchCheckFailEPKcS2_jS2_", "_ZGVdN8v_expf", "__truncsfhf2", "__muldc3", "memcpy", "omp_get_thread_num",
    "_ZN2at23TensorIteratorBase8for_eachEN3c1012function_refIFvPPcPKlllEEEl", "_ZN3c1015GetCPUAllocatorEv",
])
def test_what_every_extension_calls_is_permitted(name):
    assert is_permitted(name)


def test_what_honest_extensions_take_is_permitted():
    """Recorded from the shipped candidates in C++, the corpus's honest ones, the launchers among the fixtures, and one with
    PyTorch's own headers, autograd in C++, registered operators, threads and OpenMP.
    """
    names = (Path(__file__).parent / "recorded" / "honest_imports.txt").read_text().split()
    assert len(names) > 400 and [name for name in names if not is_permitted(name)] == []


def test_no_routine_of_linear_algebra_is_permitted_in_any_spelling():
    routines = (
        "axpy dot dotu dotc scal copy swap nrm2 asum rot rotg rotm gemv gbmv symv hemv trmv trsv ger syr gemm symm hemm syrk herk "
        "trmm trsm gesv getrf getri getrs potrf potri geqrf gels gesvd gesdd syev geev lange laswp larft trtri axpby omatcopy"
    ).split()
    names = {f"{kind}{routine}" for kind in "sdcz" for routine in routines} | {"isamax", "xerbla"}
    spelt = {f"{before}{name}{after}" for name in names for before in ("", "cblas_", "mkl_") for after in ("", "_", "_64_")}
    assert [name for name in sorted({*spelt, *map(str.upper, spelt)}) if is_permitted(name)] == []


@pytest.mark.parametrize(("symbol", "scope"), [
    ("_ZNK3c106SymInt9guard_intEPKcl", "c10::SymInt::guard_int"), ("_ZNSolsEi", "std::operator"), ("_Z6matmulv", "matmul"),
    ("_ZTVN5torch8autograd4NodeE", "torch::autograd::Node"), ("_ZN3c10lsERSoRKNS_6DeviceE", "c10::operator"),
    ("_ZNSt10filesystem4pathC1Ev", "std::filesystem::path"), ("_ZN99999999999x", "x"), ("sgemm_", ""), ("_Z", ""),
])
def test_the_scope_of_a_symbol_ends_where_its_arguments_begin(symbol, scope):
    assert scope_of(symbol) == scope


def made(folder, text, *words):
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler")
    (folder / "x.cpp").write_text(text)
    subprocess.run(["g++", "-shared", "-fPIC", "-o", folder / "x.so", folder / "x.cpp", *words], check=True, timeout=60)
    return foreign_functions(folder / "x.so")


def test_a_function_of_its_own_that_a_library_may_stand_in_for_is_foreign_unless_nobody_can(tmp_path):
    text = 'extern "C" {} void sgemm_() {{}} extern "C" void call() {{ sgemm_(); }}'
    assert made(tmp_path, text.format("")) == ["sgemm_"]
    assert made(tmp_path, text.format('__attribute__((visibility("hidden")))')) == []


def test_a_library_that_is_asked_before_it_for_its_own_functions_is_foreign(tmp_path):
    text = 'extern "C" void call() {}'
    assert made(tmp_path, text, "-Wl,-f,libmine.so") == ["libmine.so"]
    assert made(tmp_path, text, "-Wl,-F,libmine.so") == ["libmine.so"]


def test_a_usual_library_from_an_unusual_place_is_foreign(tmp_path):
    assert made(tmp_path, "void call() {}", "-Wl,-rpath,/tmp/mine:/usr/lib") == ["libraries in /tmp/mine"]
    assert made(tmp_path, "void call() {}", "-Wl,-rpath,$ORIGIN") == ["libraries in $ORIGIN"]
    assert made(tmp_path, "void call() {}", f"-Wl,-rpath,{sys.prefix}/lib") == []


@pytest.mark.parametrize("name", [
    "libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1", "libgomp-a34b3233.so.1", "libiomp5.so",
    "libc10.so", "libtorch_cpu.so", "libtorch_python.so", "libtorch.so", "libpython3.11.so.1.0", "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1", "libcudart.so.12", "libtbb.so.12", "libomp.so.5", "libc10_cuda.so",
])
def test_what_every_extension_is_linked_to_is_usual(name):
    assert linked_symbols._USUAL.match(name)


@pytest.mark.parametrize("name", [
    "libscipy_openblas64_-32a4b2a6.so", "libmkl_rt.so.2", "libblas.so.3", "libdnnl.so.3", "/tmp/libc.so.6", "mine.so",
    "libcublas.so.12",
])
def test_another_library_is_not(name):
    assert not linked_symbols._USUAL.match(name)


def test_a_library_that_is_loaded_with_an_extension_is_found_by_its_name(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler")
    (tmp_path / "y.cpp").write_text("extern \"C\" float multiply(float x) { return x; }")
    caller = 'extern "C" float multiply(float); extern "C" float f(float x) { return multiply(x); }'
    (tmp_path / "x.cpp").write_text(caller)
    for name, more in (("y", ["-Wl,-soname,libother.so"]), ("x", [tmp_path / "y.so"])):
        command = ["g++", "-shared", "-fPIC", "-o", tmp_path / f"{name}.so", tmp_path / f"{name}.cpp", *more]
        subprocess.run(command, check=True, timeout=60)
    assert foreign_functions(tmp_path / "x.so") == ["libother.so", "multiply"]


def test_names_without_end_are_not_read_to_it(built, monkeypatch):
    monkeypatch.setattr(linked_symbols, "_LONGEST_NAME", 4)
    assert foreign_functions(built) == [UNREADABLE]
    monkeypatch.undo()
    monkeypatch.setattr(linked_symbols, "_MOST_OF_NAMES", 20)
    assert foreign_functions(built) == [UNREADABLE]
    monkeypatch.undo()
    monkeypatch.setattr(linked_symbols, "_MOST_ENTRIES", 5)
    assert foreign_functions(built) == [UNREADABLE]
