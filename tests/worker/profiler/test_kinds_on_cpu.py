"""The kind that comes of what the real profiler lists of a launch on a CPU."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import torch

from harness.attribution.kernel_ownership import kind_on_cpu, middle_of_calls
from harness.build.ninja_file import with_quoted_folders
from harness.worker import extensions

pytestmark = pytest.mark.processes

SOURCE = r"""
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul_ops.h>
#include <pybind11/pybind11.h>

void library_product(long long a, long long b, long long c, long long n) {
  at::Tensor z = at::from_blob(reinterpret_cast<float*>(c), {n, n}, at::kFloat);
  at::_ops::matmul_out::call(at::from_blob(reinterpret_cast<float*>(a), {n, n}, at::kFloat),
                             at::from_blob(reinterpret_cast<float*>(b), {n, n}, at::kFloat), z);
}

void own_product(long long a, long long b, long long c, long long n) {
  const float *x = reinterpret_cast<float*>(a), *y = reinterpret_cast<float*>(b);
  float* z = reinterpret_cast<float*>(c);
  for (long long i = 0; i < n; ++i)
    for (long long k = 0; k < n; ++k)
      for (long long j = 0; j < n; ++j) z[i * n + j] += x[i * n + k] * y[k * n + j];
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("library_product", &library_product);
  module.def("own_product", &own_product);
}
"""


class Products:
    """The extension's two products of square matrices, as a candidate would wrap them."""

    def __init__(self, module):
        self._module = module

    def own(self, a, b):
        c = torch.zeros_like(a)
        self._module.own_product(a.data_ptr(), b.data_ptr(), c.data_ptr(), a.size(0))
        return c

    def library(self, a, b):
        c = torch.empty_like(a)
        self._module.library_product(a.data_ptr(), b.data_ptr(), c.data_ptr(), a.size(0))
        return c


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    from torch.utils import cpp_extension

    with pytest.MonkeyPatch.context() as patch:  # PyTorch lies in a folder with a blank where this project does
        patch.setattr(cpp_extension, "_write_ninja_file", with_quoted_folders(cpp_extension._write_ninja_file))
        module = cpp_extension.load_inline(
            "profiled_products", SOURCE, no_implicit_headers=True, extra_cflags=["-O3"],
            build_directory=str(tmp_path_factory.mktemp("built")),
        )
    extensions.remember(module)
    yield Products(module)
    extensions.opened_functions.clear()


@pytest.fixture
def kind_of(listed):
    """`kind_of(model)` for a candidate that has an extension, unless it is said to have none: as in the judge the middle one of
    three, since a pause of a busy core is soon a twentieth of a call.
    """

    def once(model, has_extension):
        listing = listed(model)
        return kind_on_cpu(listing["operators"], listing["own_us"], listing["total_us"], has_extension=has_extension)

    def kind(model, *, has_extension=True):
        return middle_of_calls([once(model, has_extension) for _ in range(3)])

    return kind


def test_an_extension_that_computes_by_itself_is_custom(kind_of, built):
    found = kind_of(built.own)
    assert found.kind == "custom"
    assert found.own_share > 0.95


def test_an_extension_that_has_pytorch_compute_is_a_librarys(kind_of, built):
    found = kind_of(built.library)
    assert found.kind == "library"
    assert found.own_share < 0.05


def test_an_extension_beside_an_operator_is_mixed(kind_of, built):
    found = kind_of(lambda a, b: built.own(a, b) + sum(torch.matmul(a, b) for _ in range(20)))
    assert found.kind == "mixed"


def test_a_decoy_beside_numpy_is_unknown_for_numpys_time_is_nobodys(kind_of, built):
    def model(a, b):
        built.own(a[:8, :8].contiguous(), b[:8, :8].contiguous())
        product = a.numpy()
        for _ in range(4):
            product = product @ b.numpy()
        return torch.from_numpy(numpy.ascontiguousarray(product))

    found = kind_of(model)
    assert found.kind == "unknown"
    assert "neither in its extension nor in PyTorch's operators" in found.notes[0]


def test_operators_called_in_a_thread_of_its_own_are_nobodys_work(kind_of, built):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(torch.matmul, torch.rand(8, 8), torch.rand(8, 8)).result()

        def model(a, b):
            built.own(a[:8, :8].contiguous(), b[:8, :8].contiguous())
            return pool.submit(torch.matmul, a, torch.matmul(b, b) * 0 + b).result()

        assert kind_of(model).kind in ("unknown", "library")


def test_without_an_extension_operators_make_a_library(kind_of):
    assert kind_of(torch.matmul, has_extension=False).kind == "library"
