"""The fake device stands behind the same seam as the two that are none."""

from __future__ import annotations

import inspect
import subprocess

import pytest
from fake_device import FakeBackend

from harness.device.backend import Backend
from harness.device.cpu import CpuBackend
from harness.device.cuda import CudaBackend

METHODS = [name for name, each in vars(Backend).items() if inspect.isfunction(each) and not name.startswith("_")]


@pytest.mark.parametrize("twin", [CpuBackend, CudaBackend, FakeBackend])
def test_each_twin_has_what_the_seam_asks_for_and_takes_the_same_arguments(twin):
    assert len(METHODS) > 25
    for name in METHODS:
        wanted, found = (list(inspect.signature(getattr(each, name)).parameters.values()) for each in (Backend, twin))
        assert [(each.name, each.kind, each.default) for each in found] == [
            (each.name, each.kind, each.default) for each in wanted
        ], f"{twin.__name__}.{name}"


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_a_backend_of_either_kind_has_the_attributes_of_the_seam(kind, fake_clock):
    backend = FakeBackend(fake_clock, kind)
    assert backend.kind == backend.identity.kind == kind
    assert all(hasattr(backend, name) for name in Backend.__annotations__)


def test_its_clock_stands_until_somebody_waits(fake_clock):
    import time

    began, began_ns = time.monotonic(), time.perf_counter_ns()
    assert (time.monotonic(), time.perf_counter_ns()) == (began, began_ns)
    time.sleep(2.5)
    fake_clock.pass_us(500_000.0)
    assert time.monotonic() - began == pytest.approx(3.0) and time.perf_counter_ns() - began_ns == 3 * 10**9


def test_another_threads_sleep_moves_no_time(fake_clock):
    """One that an earlier test left behind would make a control old within a run."""
    import threading
    import time

    began = time.monotonic()
    other = threading.Thread(target=lambda: time.sleep(0.01))
    other.start()
    other.join()
    assert time.monotonic() == began


@pytest.mark.processes
def test_the_standard_librarys_wait_for_a_true_process_moves_no_time(fake_clock):
    before = fake_clock.monotonic()
    with subprocess.Popen(["sleep", "0.2"]) as process:
        process.wait(timeout=30)
    assert fake_clock.monotonic() == before
