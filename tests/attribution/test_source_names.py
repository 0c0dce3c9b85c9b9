"""Kernels that a candidate's text defines, and what only looks like one."""

from __future__ import annotations

import time

import pytest

from harness.attribution.source_names import kernels_in, source_names


@pytest.mark.parametrize(
    ("cuda", "names"),
    [
        ("__global__ void tile(float* x) { *x = 1; }", {"tile"}),
        ('extern "C" __global__ void tile(float* x)\n{\n}', {"tile"}),
        ("__global__ void __launch_bounds__(32 * 8, 2) tile(float* x) {}", {"tile"}),
        ("template <int N>\n__global__ __launch_bounds__(N) void tile(const float* __restrict__ x) {}", {"tile"}),
        ("static __global__\nvoid tile(float (*f)(float), int n) {}", {"tile"}),
        ("__global__ void __cluster_dims__(2, 1, 1) tile() {} __global__ void other() {}", {"tile", "other"}),
        ("__global__ void tile(float* x);", set()),
        ("// __global__ void tile(float* x) {}\n/* __global__ void other() {\n} */", set()),
        ("__device__ float tile(float x) { return x; }", set()),
        ("#define KERNEL __global__ void\n", set()),
        ("__global__", set()),
        ("__global__ void tile(", set()),
    ],
)
def test_global_functions_are_found_where_they_are_defined(cuda, names):
    assert kernels_in(cuda) == names


def written(tmp_path, text, name="candidate.py"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_strings_of_a_file_count_and_its_comments_do_not(tmp_path):
    found = source_names(written(tmp_path, '''"""A docstring: __global__ void docstring_kernel() {}"""
# __global__ void comment_kernel() {}
SOURCE = r"""__global__ void real(float* x) { *x = 1; }"""
def build(size):
    "__global__ void second_docstring() {}"
    return f"__global__ void sized_{size}() {{}} __global__ void whole(int n) {{ n += {size}; }}"
'''))
    assert found.kernels == {"real", "whole"}
    assert found.functions == {"build"}


def test_functions_in_code_that_is_run_as_text_count_as_written(tmp_path):
    path = written(tmp_path, 'CODE = """\n@triton.jit\ndef tril_kernel(x):\n    pass\n"""\nexec(CODE)\n')
    assert source_names(path).functions == {"tril_kernel"}


def test_modules_beside_the_candidate_that_it_imports_are_read_too(tmp_path):
    written(tmp_path, "@triton.jit\ndef shared_kernel(x):\n    pass\n", "_shared.py")
    written(tmp_path, "def unused_kernel(x):\n    pass\n", "unused.py")
    path = written(tmp_path, "from _shared import shared_kernel\nimport torch\n")
    assert source_names(path).functions == {"shared_kernel"}


@pytest.mark.parametrize("content", [b"def (", b"\xff\xfe\x00", b"", b"x = '\\0'"])
def test_a_file_that_cannot_be_read_defines_nothing(tmp_path, content):
    path = tmp_path / "candidate.py"
    path.write_bytes(content)
    assert source_names(path).kernels == source_names(path).functions == frozenset()
    assert source_names(tmp_path / "gone.py").kernels == frozenset()


def test_reading_a_megabyte_takes_seconds_whatever_it_holds():
    began = time.process_time()
    for text in ("/*x", "__global__ ", "__global__ x(", "__global__ __launch_bounds__(1) ", "//x ", "(", ")("):
        kernels_in((1 << 20) // len(text) * text)
    assert time.process_time() - began < 30


def test_a_comment_that_nobody_closes_goes_on_to_the_end():
    assert kernels_in("__global__ void one() {} /* __global__ void two() {}") == {"one"}


def test_a_file_of_blank_lines_is_gone_over_once(tmp_path):
    path = tmp_path / "candidate.py"
    path.write_text("import torch\n" + 200_000 * "\n" + "from beside import x\n", encoding="utf-8")
    (tmp_path / "beside.py").write_text('SOURCE = "__global__ void tile(float* x) {}"\n', encoding="utf-8")
    began = time.process_time()
    assert source_names(path).kernels == {"tile"}
    assert time.process_time() - began < 10


def test_functions_that_cute_dsl_and_tilelang_compile_are_told_by_their_decorators(tmp_path):
    path = written(tmp_path, """
@cute.kernel
def tril(x): pass
@T.prim_func
def tile(x): pass
@kernel(arch=90)
def bare(x): pass
@cute.jit
def launch(x): pass
def plain(x): pass
""")
    assert source_names(path).stems == {"kernel_cutlass_tril", "tile_kernel", "kernel_cutlass_bare"}
