"""Candidates as others publish them, through the real command line: built at the first call, under a name of the moment,
from sources in /tmp; and such as no compiler takes.
"""

from __future__ import annotations

import shutil

import pytest

from harness.sandbox.sandbox_choice import strongest_sandbox

pytestmark = [
    pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone,
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler"),
]

PRODUCT = """
import os, tempfile, time, uuid
import torch
from torch.utils.cpp_extension import load, load_inline
SOURCE = r'''
#include <torch/extension.h>
torch::Tensor product(torch::Tensor a, torch::Tensor b) {
  const int64_t n = a.size(0);
  auto out = torch::zeros_like(a);
  const float *x = a.data_ptr<float>(), *y = b.data_ptr<float>();
  float* z = out.data_ptr<float>();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k <= i; ++k)
      for (int64_t j = 0; j <= k; ++j) z[i * n + j] += x[i * n + k] * y[k * n + j];
  return out;
}
'''
MODULE = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("product", &product); }}'
{at_import}

class ModelNew(torch.nn.Module):
    extension = None

    def forward(self, A, B):
        {in_forward}
"""
UNIQUE = """NAME = f"ext_{uuid.uuid4().hex}_{os.getpid()}_{int(time.time() * 1e6)}"
extension = load_inline(name=NAME, cpp_sources=SOURCE + MODULE.replace("TORCH_EXTENSION_NAME", NAME), extra_cflags=["-O2"])
"""
IN_TMP = """os.makedirs("/tmp/cuda_extensions", exist_ok=True)
with open("/tmp/cuda_extensions/product.cpp", "w") as file:
    file.write(SOURCE + MODULE)
extension = load(name="product", sources=["/tmp/cuda_extensions/product.cpp"], extra_cflags=["-O2"])
"""
AT_FIRST_CALL = """if self.extension is None:
            path = os.path.join(tempfile.mkdtemp(), "product.cpp")
            with open(path, "w") as file:
                file.write(SOURCE + MODULE)
            self.extension = load(name=f"late_{uuid.uuid4().hex}", sources=[path], extra_cflags=["-O2"])
        return self.extension.product(A, B)"""
# Without PyTorch's headers, which take a compiler seconds, twice where it refuses the source.
BROKEN = AT_FIRST_CALL.replace("SOURCE + MODULE", '"int product() { return out }"')
GOES_ON = """if self.extension is None:
            try:
                self.extension = load_inline(name="late", cpp_sources="no C++ at all", no_implicit_headers=True)
            except Exception:
                self.extension = False
        return torch.tril(A @ B)"""
AT_ONCE = "return extension.product(A, B)"
CANDIDATES = {
    "at_first_call": ("", AT_FIRST_CALL), "unique": (UNIQUE, AT_ONCE), "in_tmp": (IN_TMP, AT_ONCE),
    "broken": ("", BROKEN), "goes_on": ("", GOES_ON),
    "wants_gpu": ("", "return torch.tril(A.cuda() @ B.cuda())"),
}


# All outputs were right; what a shared CPU did to a clock is not what these are about.
TIMED = ("ok/", "unsure/noisy")


def verdict(row):
    return f"{row['status']}/{row['reason_code']}"


@pytest.fixture(scope="module")
def bench(new_bench):
    bench = new_bench("built_as_asked")
    folder = bench.candidates([])
    for name, (at_import, in_forward) in CANDIDATES.items():
        # As their authors write it; no braces but these are the format's.
        text = PRODUCT.replace("{{", "{").replace("}}", "}")
        text = text.replace("{at_import}", at_import.strip()).replace("{in_forward}", in_forward)
        (folder / f"{name}.py").write_text(text)
    return bench


@pytest.fixture(scope="module")
def words(bench):
    return bench.folder / "tril_small.yaml", bench.folder / "candidates", "cpu"


@pytest.fixture(scope="module")
def first(bench, words):
    return bench.end(bench.judge(*words))


@pytest.fixture(scope="module")
def rows(bench, words, first):
    return bench.judged_again(first, ["at_first_call", "unique", "in_tmp", "goes_on"], *words)


@pytest.mark.parametrize("name", ["at_first_call", "unique", "in_tmp"])
def test_it_is_built_and_judged_like_any_other(rows, name):
    if name == "in_tmp" and not strongest_sandbox().read_only_repository:
        pytest.skip("without namespaces /tmp is the machine's")
    assert verdict(rows[name]) in TIMED, rows[name]["reason"]
    assert rows[name]["language"] == "cpp"
    assert float(rows[name]["build_s"]) > 1


def test_what_no_compiler_takes_at_the_first_call_is_told_by_its_line(rows):
    assert (rows["broken"]["status"], rows["broken"]["reason_code"]) == ("build_failed", "compile_error"), rows["broken"]["reason"]
    assert "broken.py:" in rows["broken"]["reason"] and "return out }" in rows["broken"]["reason"], rows["broken"]["reason"]


def test_one_that_goes_on_without_it_is_judged_by_what_it_then_does(rows):
    assert verdict(rows["goes_on"]) in TIMED, rows["goes_on"]["reason"]
    assert "went on without it" in rows["goes_on"]["warnings"]


def test_one_that_needs_a_gpu_is_skipped_where_there_is_none_and_never_wrong(rows):
    assert (rows["wants_gpu"]["status"], rows["wants_gpu"]["reason_code"]) == ("skipped", "no_gpu")


def test_a_later_run_has_from_the_start_what_was_asked_for(bench, words, first):
    only = [word for name in ("at_first_call", "unique") for word in ("--only", name)]
    again = bench.end(bench.judge(*words, *only))
    assert "building what it asked for" in first.err and "building what it asked for" not in again.err
    assert {row["cached"] for row in again.rows.values() if row["role"] == "candidate"} == {"true"}
