"""A launch under the real profiler on a CPU, and the kind that comes of what it lists."""

from __future__ import annotations

import numpy
import pytest
import torch

from harness.player import extensions, profiling
from harness.provenance.kinds import Span, kind_on_cpu, kind_on_gpu
from harness.provenance.symbols import gather

SIZE = 512
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


class Stage:
    """A CPU stage without a referee: a turn is there when it is asked for."""

    stream = None

    def __init__(self, *inputs):
        self._inputs = list(inputs)

    def inputs(self, index, specs):
        return self._inputs

    def wait_for_turn(self, sequence): ...
    def fill(self, index): ...
    def synchronize(self): ...
    def restore_stream(self): ...
    def signal_end(self, sequence): ...


class Launcher:
    class layout:
        inputs = outputs = ()

        @staticmethod
        def fault_of(result, stage, index):
            return {"code": "not looked at"}


def listed(model):
    torch.manual_seed(0)
    stage = Stage(torch.rand(SIZE, SIZE), torch.rand(SIZE, SIZE))
    skeleton = {"list": [{"tensor": 0}, {"tensor": 1}]}
    profiling.profiled_launch(stage, Launcher, model, 1, skeleton)  # the first call pays for starting threads
    return profiling.profiled_launch(stage, Launcher, model, 3, skeleton)


def kind_of(model, *, has_extension=True):
    listing = listed(model)
    return kind_on_cpu(
        listing["operators"], listing["own_us"], listing["total_us"], has_extension=has_extension
    )


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for a busy machine's cores would make a library's share anything."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    from torch.utils.cpp_extension import load_inline

    module = load_inline(
        "profiled_products", SOURCE, no_implicit_headers=True, extra_cflags=["-O3"],
        build_directory=str(tmp_path_factory.mktemp("built")),
    )
    extensions.remember(module)
    yield Products(module)
    extensions.opened_functions.clear()


def test_an_extension_that_computes_by_itself_is_custom(built):
    found = kind_of(built.own)
    assert found.kind == "custom"
    assert found.own_share > 0.95


def test_an_extension_that_has_pytorch_compute_is_a_librarys(built):
    found = kind_of(built.library)
    assert found.kind == "library"
    assert found.own_share < 0.05


def test_an_extension_beside_an_operator_is_mixed(built):
    found = kind_of(lambda a, b: built.own(a, b) + sum(torch.matmul(a, b) for _ in range(20)))
    assert found.kind == "mixed"


def test_a_decoy_beside_numpy_is_unknown_for_numpys_time_is_nobodys(built):
    def model(a, b):
        built.own(a[:8, :8].contiguous(), b[:8, :8].contiguous())
        product = a.numpy()
        for _ in range(4):
            product = product @ b.numpy()
        return torch.from_numpy(numpy.ascontiguousarray(product))

    found = kind_of(model)
    assert found.kind == "unknown"
    assert "neither in its extension nor in PyTorch's operators" in found.notes[0]


def test_operators_called_in_a_thread_of_its_own_are_nobodys_work(built):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(torch.matmul, torch.rand(8, 8), torch.rand(8, 8)).result()

        def model(a, b):
            built.own(a[:8, :8].contiguous(), b[:8, :8].contiguous())
            return pool.submit(torch.matmul, a, torch.matmul(b, b) * 0 + b).result()

        assert kind_of(model).kind in ("unknown", "library")


def test_a_function_that_names_an_extensions_module_as_its_own_is_none_of_its_functions(built):
    def model(a, b):
        product = a.numpy().dot
        product.__module__ = built._module.__name__
        return torch.from_numpy(product(b.numpy()))

    assert listed(model)["own_us"] == 0.0


def test_functions_of_others_that_an_extensions_module_holds_are_not_its_own(built):
    import math
    from types import ModuleType

    module = ModuleType(built._module.__name__)
    module.of_math, module.of_an_array, module.math = math.sqrt, numpy.ones(2).dot, math
    module.of_an_array.__module__ = module.__name__
    before = dict(extensions.opened_functions)
    extensions.remember(module)
    assert extensions.opened_functions == before
    extensions.remember(math)
    try:
        assert id(math.sqrt) in extensions.opened_functions
    finally:
        extensions.opened_functions.clear()
        extensions.opened_functions.update(before)


def test_what_another_thread_of_pythons_does_meanwhile_is_noticed(built):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(torch.matmul, torch.rand(8, 8), torch.rand(8, 8)).result()
        found = listed(lambda a, b: pool.submit(lambda: sum(torch.matmul(a, b) for _ in range(8))).result())
        assert found["others_us"] > 0.3 * found["total_us"]
        assert not found["others_began"]
        idle = listed(built.own)
        assert idle["others_us"] < 0.05 * idle["total_us"]


def test_a_thread_or_a_process_that_begins_meanwhile_is_noticed(built):
    import subprocess
    import threading

    def in_a_thread(a, b):
        thread = threading.Thread(target=torch.matmul, args=(a, b))
        thread.start()
        thread.join()
        return a

    def in_a_process(a, b):
        subprocess.run(["true"], check=True)
        return a

    assert listed(in_a_thread)["others_began"]
    assert listed(in_a_process)["others_began"]
    assert not listed(built.own)["others_began"]


def test_without_an_extension_operators_make_a_library(built):
    assert kind_of(torch.matmul, has_extension=False).kind == "library"


def test_a_forward_that_raises_leaves_no_profiler_behind():
    def model(a, b):
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        listed(model)
    assert not torch.autograd._profiler_enabled()
    assert profiling.sys.getprofile() is None


def test_patches_of_torchs_profiler_are_too_late(built, monkeypatch):
    monkeypatch.setattr(torch.profiler, "profile", None)
    monkeypatch.setattr(torch.autograd.profiler, "profile", None)
    monkeypatch.setattr(torch.autograd, "_disable_profiler", None)
    monkeypatch.setattr(torch._C._autograd._KinetoEvent, "name", lambda event: "mine")
    monkeypatch.setattr(torch._C._autograd._ProfilerResult, "events", lambda result: [])
    assert kind_of(built.library).kind == "library"


def span(name, start_ns, duration_ns, thread=1):
    return profiling._Span(start_ns, duration_ns, name, thread)


def test_each_moment_counts_for_the_innermost_event_of_its_thread():
    spans = [
        span("outer", 0, 10_000), span("inner", 2_000, 5_000), span("inmost", 3_000, 1_000),
        span("next", 10_000, 2_000), span("outer", 0, 4_000, thread=2),
    ]
    assert profiling._own_times_us(spans) == {"outer": 9.0, "inner": 4.0, "inmost": 1.0, "next": 2.0}


def test_kernels_are_listed_with_when_they_ran_from_the_first_one_on():
    listed = profiling._when([span("b", 7_000, 1_000), span("a", 5_000, 4_000), span("b", 9_000, 500)])
    assert listed == {"names": ["a", "b"], "spans": [[0, 0.0, 4.0], [1, 2.0, 1.0], [1, 4.0, 0.5]]}
    assert profiling._when([]) == {"names": [], "spans": []}


def test_a_flood_of_kernels_is_cut_to_the_longest():
    listed = profiling._when([span(f"k{index}", index, index + 1) for index in range(20_000)])
    assert len(listed["names"]) == 200
    assert len(listed["spans"]) <= 10_000


class GpuStage(Stage):
    stream = 0

    def synchronize(self):
        torch.cuda.synchronize()


def kind_on_this_gpu(tmp_path, model):
    source = tmp_path / "candidate.py"
    source.write_text(f"SOURCE = {RUN_TIME_SOURCE!r}\n", encoding="utf-8")
    stage = GpuStage(*(torch.rand(2048, 2048, device="cuda") for _ in range(2)))
    skeleton = {"list": [{"tensor": 0}, {"tensor": 1}]}
    model(*stage._inputs)
    listing = profiling.profiled_launch(stage, Launcher, model, 1, skeleton)
    spans = [Span(listing["names"][index], start_us, time_us) for index, start_us, time_us in listing["spans"]]
    return kind_on_gpu(spans, gather([], None, source, listing["names"]))


RUN_TIME_SOURCE = """
extern "C" __global__ void twice(const float* a, float* c, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = 2.0f * a[i];
}
"""


@pytest.mark.gpu
def test_on_a_gpu_pytorchs_product_is_a_librarys(tmp_path):
    found = kind_on_this_gpu(tmp_path, torch.matmul)
    assert found.kind == "library", found
    assert found.busy_us > 100


@pytest.mark.gpu
def test_on_a_gpu_a_kernel_compiled_at_run_time_is_its_own(tmp_path):
    kernel = torch.cuda._compile_kernel(RUN_TIME_SOURCE, "twice")

    def model(a, b):
        c = torch.zeros_like(a)
        kernel(grid=(264, 1, 1), block=(256, 1, 1), args=[a, c, a.numel()])
        return c

    found = kind_on_this_gpu(tmp_path, model)
    assert found.kind == "custom", found
    assert found.notes[0].startswith("twice: compiled while it ran")


@pytest.mark.gpu
def test_on_a_gpu_a_kernel_on_a_side_stream_takes_nothing_from_the_product_beside_it(tmp_path):
    kernel, side = torch.cuda._compile_kernel(RUN_TIME_SOURCE, "twice"), torch.cuda.Stream()

    def model(a, b):
        c = torch.empty_like(a)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                kernel(grid=(8, 1, 1), block=(64, 1, 1), args=[a, c, 1 << 16], stream=side)
        product = torch.matmul(a, b)
        torch.cuda.current_stream().wait_stream(side)
        return product

    found = kind_on_this_gpu(tmp_path, model)
    assert found.kind in ("library", "mixed"), found
