"""The C++ half of a candidate of which only the CUDA half is compiled."""

from __future__ import annotations

import pytest

from harness.build import cpp_half
from harness.build.toolchain import find_toolchain
from harness.model.verdict import ReasonCode, Status

from .conftest import needs_nvcc

pytestmark = pytest.mark.processes

CANDIDATE = '''
import torch
from torch.utils.cpp_extension import load_inline

extension = load_inline("half", {cpp!r}, r"""
#include <torch/extension.h>
__global__ void twice(const float* x, float* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}}
torch::Tensor run(torch::Tensor x) {{
    auto y = torch::empty_like(x);
    twice<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}}
""", functions={functions!r})


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.run(x)
'''


def is_declarations(text, functions=("run_it",), **more):
    return cpp_half._is_declarations({"cpp_sources": text, "functions": list(functions), **more})


@pytest.mark.parametrize("text", [
    "torch::Tensor run_it(torch::Tensor a, torch::Tensor B);",
    "#include <torch/extension.h>\n// the launcher\nat::Tensor run_it(const at::Tensor& a, int64_t n, bool transposed);\n",
    "std::vector<torch::Tensor> run_it(torch::Tensor a); void other_one(float x, std::optional<torch::Tensor> bias);",
    ["std::tuple<torch::Tensor, torch::Tensor> run_it(const torch::Tensor &a, double eps);"],
    "/* two\nlines */ torch::Tensor run_it();",
])
def test_declarations_in_types_that_bind_need_no_compiler(text):
    assert is_declarations(text) and is_declarations(text, extra_cflags=["-O3", "-std=c++17 -fPIC"])


@pytest.mark.parametrize("text", [
    "", "torch::Tensor run_it(torch::Tensor a)", "torch::Tensor run_its(torch::Tensor a);", "Tensor run_it(Tensor a);",
    "torch::Tensor run_it(torch::Tensor a); torch::Tensor run_it(torch::Tensor a, int n);", "torch::Tensor run_it(float* a);",
    "torch::Tensor run_it(torch::Tensor int);", "torch::Tensor run_it(torch::Tensor a) { return a; }",
    "#define N 3\ntorch::Tensor run_it(torch::Tensor a);", "torch::Tensor run_it(torch::Tensor a, torch::Tensor b = none);",
    "torch::Tensor run_it(torch::Tensor a);;; x", "using torch::Tensor; Tensor run_it(Tensor a);",
    "torch::Tensor run_it(float& a);", "torch::Tensor run_it(torch::Tensora);",
    "torch::Tensor run_it(torch::Tensor a, float eps = 1f);", "torch::Tensor run_it(int n = 1, int b);",
    "torch::Tensor run_it(torch::Tensor a, torch::Tensor a);", "torch::Tensor run_it(torch::Tensor and);",
    "torch::Tensor run_it(float M_PI);", "// a \\\ntorch::Tensor run_it(torch::Tensor a);",
])
def test_all_else_is_for_a_compiler(text):
    assert not is_declarations(text)


@pytest.mark.parametrize("name", ["tanh", "exp", "div", "run", "lgamma_r", "_run", "RUN_IT"])
def test_a_function_that_may_be_the_c_librarys_or_a_macro_is_for_a_compiler(name):
    """torch binds by the name alone, which stands for several there."""
    assert not is_declarations(f"torch::Tensor {name}(torch::Tensor a);", [name])


def test_flags_that_may_mean_something_are_for_a_compiler():
    for flag in ("--use_fast_math", "-std=c++14", "-DN=3", "-Werror", "-O3 -include x.h"):
        assert not is_declarations("torch::Tensor run_it(torch::Tensor a);", extra_cflags=[flag])


def test_where_nothing_is_written_and_nothing_bound_there_is_nothing_to_look_at():
    assert is_declarations("", []) and is_declarations("// the kernel binds itself", [], no_implicit_headers=True)
    assert not is_declarations("#include <torch/extension.h>", ["run"])


def test_a_function_that_is_not_declared_or_said_of_in_quotes_is_for_a_compiler():
    text = "torch::Tensor run_it(torch::Tensor a);"
    assert not is_declarations(text, ["run_it", "walk_it"])
    assert not is_declarations(text, no_implicit_headers=True)
    assert not cpp_half._is_declarations({"cpp_sources": text, "functions": {"run_it": 'say "twice"'}})


@needs_nvcc
@pytest.mark.parametrize(("name", "text", "more", "passed"), [
    ("a.cpp", "#ifdef __NVCC__\n#error not by nvcc\n#endif\n#include <cuda_runtime.h>\nint f() { return 1; }\n", {}, True),
    ("a.c", "#include <cmath>\nint f() { return 1; }\n", {}, True), ("a.C", "int f() { return 1; }\n", {}, True),
    ("a.cpp", "int f() { return FOO; }\n", {"extra_cflags": ["-Wp,-DFOO=1 -Wall -Werror"]}, True),
    ("a.cpp", "int f() { return FOO; }\n", {}, False),
])
def test_the_host_compiler_reads_it_as_torch_would_have_it_built(tmp_path, name, text, more, passed):
    (tmp_path / name).write_text(text)
    arguments = {"name": "x", "sources": [str(tmp_path / name), str(tmp_path / "k.cu")], **more}
    nvcc = find_toolchain(None).nvcc_path
    found = cpp_half.look("load", arguments, tmp_path, nvcc, "-std=c++17", [])
    assert found.passed is passed, found.log


@needs_nvcc
@pytest.mark.timeout(300)
def test_what_the_host_compiler_refuses_is_not_compiled(build_pool):
    source = CANDIDATE.format(cpp="torch::Tensor run(torch::Tenor x);", functions=["run"])
    (build,) = build_pool.build(build_pool.write("half", source))
    assert (build.verdict.status, build.verdict.reason_code) == (Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR)
    assert "Tenor" in build.verdict.reason and "half.py" in build.verdict.reason
    assert build.headers == "slim"  # nothing in PyTorch's own headers has that name


@needs_nvcc
def test_one_that_is_more_than_declarations_and_right_is_compiled_with_the_slim_headers(build_pool):
    cpp = "torch::Tensor run(torch::Tensor x);\ntorch::Tensor twice(torch::Tensor x) { TORCH_CHECK(x.dim() > 0); return run(run(x)); }"
    (build,) = build_pool.build(build_pool.write("half", CANDIDATE.format(cpp=cpp, functions=["run", "twice"])))
    assert (build.verdict.status, build.headers) == (Status.COMPILED, "slim"), build.verdict.reason
