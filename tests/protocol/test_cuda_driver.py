"""The driver's calls where there is no driver, or the driver says no."""

from __future__ import annotations

import ctypes

import pytest

from harness.protocol import cuda_driver


@pytest.fixture(autouse=True)
def fresh_library():
    cuda_driver._library.cache_clear()
    yield
    cuda_driver._library.cache_clear()


def test_a_machine_without_a_driver_is_told_which_library_is_missing(monkeypatch):
    def refuse(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    with pytest.raises(cuda_driver.DriverError, match="libcuda.so.1|nvcuda.dll"):
        cuda_driver.allocate(1 << 21)


def test_a_call_that_fails_is_named_with_the_drivers_own_word(monkeypatch):
    class Driver:
        def cuMemAlloc_v2(self, *_):
            return 2

        def cuGetErrorName(self, code, text):
            text._obj.value = b"CUDA_ERROR_OUT_OF_MEMORY"
            return 0

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver())
    with pytest.raises(cuda_driver.DriverError, match=r"cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY \(2\)"):
        cuda_driver.allocate(1 << 50)


class Recording:
    """A driver that says yes, and keeps what it was given."""

    def __init__(self):
        self.calls = []

    def cuModuleLoadData(self, *_):
        return 0

    def cuModuleGetFunction(self, function, module, name):
        function._obj.value = 77
        return 0

    def cuLaunchKernel(self, function, bx, by, bz, tx, ty, tz, shared, stream, addresses, extra):
        values = [ctypes.cast(addresses[0], ctypes.POINTER(ctypes.c_uint64))[0],
                  ctypes.cast(addresses[1], ctypes.POINTER(ctypes.c_double))[0]]
        grid = tuple(each.value for each in (bx, by, bz, tx, ty, tz, shared))
        self.calls.append((function.value, grid, stream.value, values, extra))
        return 0

    def cuStreamWaitValue32_v2(self, stream, address, value, flags):
        self.calls.append((stream.value, address.value, value.value, flags.value))
        return 0


def test_a_kernel_is_launched_with_the_values_of_each_launch(monkeypatch):
    driver = Recording()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    kernel = cuda_driver.Kernel(b"cubin", "some_kernel", 528, 512, (ctypes.c_uint64, ctypes.c_double))
    kernel.launch(0, 1 << 40, 0.25)
    kernel.launch(9, (1 << 64) - 1, -1.0)
    assert driver.calls == [
        (77, (528, 1, 1, 512, 1, 1, 0), None, [1 << 40, 0.25], None),
        (77, (528, 1, 1, 512, 1, 1, 0), 9, [(1 << 64) - 1, -1.0], None),
    ]
    with pytest.raises(ValueError):
        kernel.launch(0, 1)


def test_a_stream_waits_until_a_word_is_at_least_a_value(monkeypatch):
    driver = Recording()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    cuda_driver.stream_wait(0, 1 << 33, 5)
    assert driver.calls == [(None, 1 << 33, 5, 0)]
