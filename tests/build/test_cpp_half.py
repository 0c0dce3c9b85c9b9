"""The C++ half of a candidate of which only the CUDA half is compiled."""

from __future__ import annotations

import pytest

from harness.build import cpp_half
from harness.verdict import ReasonCode, Status

from .conftest import needs_nvcc

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


def is_declarations(text, functions=("run",), **more):
    return cpp_half._is_declarations({"cpp_sources": text, "functions": list(functions), **more})


@pytest.mark.parametrize("text", [
    "torch::Tensor run(torch::Tensor a, torch::Tensor b);",
    "#include <torch/extension.h>\n// the launcher\nat::Tensor run(const at::Tensor& a, int64_t n = 3, bool t = true);\n",
    "std::vector<torch::Tensor> run(torch::Tensor a); void other(float x, std::optional<torch::Tensor> bias);",
    ["std::tuple<torch::Tensor, torch::Tensor> run(const torch::Tensor &a, double eps);"],
    "/* two\nlines */ torch::Tensor run();",
])
def test_declarations_in_types_that_bind_need_no_compiler(text):
    assert is_declarations(text)


@pytest.mark.parametrize("text", [
    "", "torch::Tensor run(torch::Tensor a)", "torch::Tensor runs(torch::Tensor a);", "Tensor run(Tensor a);",
    "torch::Tensor run(torch::Tensor a); torch::Tensor run(torch::Tensor a, int n);", "torch::Tensor run(float* a);",
    "torch::Tensor run(torch::Tensor int);", "torch::Tensor run(torch::Tensor a) { return a; }",
    "#define N 3\ntorch::Tensor run(torch::Tensor a);", "torch::Tensor run(torch::Tensor a, torch::Tensor b = none);",
    "torch::Tensor run(torch::Tensor a);;; x", "using torch::Tensor; Tensor run(Tensor a);",
    "torch::Tensor run(float& a);", "torch::Tensor run(torch::Tensora);",
])
def test_all_else_is_for_a_compiler(text):
    assert not is_declarations(text)


def test_where_nothing_is_written_and_nothing_bound_there_is_nothing_to_look_at():
    assert is_declarations("", []) and is_declarations("// the kernel binds itself", [], no_implicit_headers=True)
    assert not is_declarations("#include <torch/extension.h>", ["run"])


def test_a_function_that_is_not_declared_or_said_of_in_quotes_is_for_a_compiler():
    text = "torch::Tensor run(torch::Tensor a);"
    assert not is_declarations(text, ["run", "walk"])
    assert not is_declarations(text, no_implicit_headers=True)
    assert not cpp_half._is_declarations({"cpp_sources": text, "functions": {"run": 'say "twice"'}})


@needs_nvcc
@pytest.mark.timeout(300)
def test_what_the_host_compiler_refuses_is_not_compiled(workshop):
    source = CANDIDATE.format(cpp="torch::Tensor run(torch::Tenor x);", functions=["run"])
    (build,) = workshop.build(workshop.write("half", source))
    assert (build.verdict.status, build.verdict.reason_code) == (Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR)
    assert "Tenor" in build.verdict.reason and "half.py" in build.verdict.reason


@needs_nvcc
def test_one_that_is_more_than_declarations_and_right_is_compiled_with_the_slim_headers(workshop):
    cpp = "torch::Tensor run(torch::Tensor x);\ntorch::Tensor twice(torch::Tensor x) { TORCH_CHECK(x.dim() > 0); return run(run(x)); }"
    (build,) = workshop.build(workshop.write("half", CANDIDATE.format(cpp=cpp, functions=["run", "twice"])))
    assert (build.verdict.status, build.headers) == (Status.COMPILED, "slim"), build.verdict.reason
