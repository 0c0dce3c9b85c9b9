"""The driver's calls where there is no driver, or the driver says no."""

from __future__ import annotations

import ctypes

import pytest

from harness.wire import cuda_driver


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
