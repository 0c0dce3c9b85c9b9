"""The native stopwatch: what the host compiler builds, on a driver that keeps its own time, and what stands in for it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import types

import pytest
import torch

from harness.build.toolchain import find_host_compiler
from harness.protocol.clocks import gpu_stopwatch, stopwatch
from harness.protocol.clocks.gpu_stopwatch import NativeEvents

pytestmark = pytest.mark.processes

CREATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint)
RECORD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
ELAPSED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_float), ctypes.c_void_p, ctypes.c_void_p)


class Driver:
    """Its clock goes on by 4 ms with each event that is recorded; `fails` is what a function says by its name."""

    def __init__(self):
        self.made, self.now_ms, self.recorded, self.streams, self.fails = 0, 0, {}, set(), {}
        self.cuEventCreate, self.cuEventRecord = CREATE(self._create), RECORD(self._record)
        self.cuEventElapsedTime = ELAPSED(self._elapsed)

    def _create(self, event, flags):
        self.made += 1
        event[0] = self.made
        return self.fails.get("create", flags)  # any flag is one too many: timing is on without

    def _record(self, event, stream):
        self.streams.add(stream)
        self.now_ms += 4
        self.recorded[event] = self.now_ms
        return self.fails.get("record", 0)

    def _elapsed(self, milliseconds, start, stop):
        milliseconds[0] = self.recorded[stop] - self.recorded[start]
        return self.fails.get("elapsed", 0)


@pytest.fixture(scope="module")
def library():
    return gpu_stopwatch.compiled(find_host_compiler())


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def watch(library, driver):
    return NativeEvents(library, driver)


def test_a_lap_is_from_its_start_to_its_stop_whatever_was_marked_between(watch):
    mark = watch.start()
    inner = watch.stop(watch.start())
    lap = watch.stop(mark)
    assert (watch.microseconds(inner), watch.microseconds(lap)) == (4000.0, 12_000.0)


def test_events_are_made_once_and_recorded_on_the_legacy_default_stream(watch, driver):
    for _ in range(3 * stopwatch.MARKS):
        watch.start()
    assert driver.made == stopwatch.MARKS == len(driver.recorded)
    assert driver.streams == {None}


def test_a_mark_is_good_until_as_many_later_ones_as_there_are_and_then_refused(watch):
    lap = watch.stop(watch.start())
    for _ in range(stopwatch.MARKS - 2):
        watch.start()
    assert watch.microseconds(lap) == 4000.0
    watch.start()
    with pytest.raises(RuntimeError, match=f"among the last {stopwatch.MARKS}"):
        watch.microseconds(lap)


@pytest.mark.parametrize("lap", [(1, 0), (0, 2), (-1, 0)], ids=["backwards", "never marked", "negative"])
def test_what_is_no_lap_is_refused(watch, lap):
    watch.stop(watch.start())
    with pytest.raises(RuntimeError, match="a time was asked for"):
        watch.microseconds(lap)


@pytest.mark.parametrize(
    ("name", "act"),
    [("record", lambda watch, lap: watch.start()), ("record", lambda watch, lap: watch.stop(lap[0])),
     ("elapsed", lambda watch, lap: watch.microseconds(lap))],
)
def test_what_the_driver_says_is_raised(watch, driver, name, act):
    lap = watch.stop(watch.start())
    driver.fails[name] = 700
    with pytest.raises(RuntimeError, match="CUDA error 700"):
        act(watch, lap)


def test_a_driver_that_makes_no_events_is_said(library, driver):
    driver.fails["create"] = 2
    with pytest.raises(RuntimeError, match="CUDA error 2, found when timing events were to be made"):
        NativeEvents(library, driver)


def test_it_is_built_without_a_header_of_cuda_or_python(tmp_path):
    source = tmp_path / "stopwatch.cpp"
    source.write_text(gpu_stopwatch.SOURCE)
    read = subprocess.run(
        [find_host_compiler(), "-M", str(source)], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "cuda" not in read.replace(str(tmp_path), "").lower() and "Python.h" not in read


@pytest.mark.parametrize("status", [1, 0], ids=["refuses", "makes nothing"])
def test_where_the_compiler_does_not_build_it_there_is_none(tmp_path, status):
    cxx = tmp_path / "c++"
    cxx.write_text(f"#!/bin/sh\nexit {status}\n")
    cxx.chmod(0o755)
    assert gpu_stopwatch.compiled(str(cxx)) is None
    assert gpu_stopwatch.compiled(None) is None
    assert gpu_stopwatch.compiled(str(tmp_path / "none")) is None


def test_a_disk_that_is_full_leaves_none(monkeypatch):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gpu_stopwatch.tempfile, "TemporaryDirectory", full)
    gpu_stopwatch.compiled.cache_clear()
    assert gpu_stopwatch.compiled(find_host_compiler()) is None
    gpu_stopwatch.compiled.cache_clear()


@pytest.mark.parametrize("given", [None, b"no library"], ids=["none was built", "it does not load"])
def test_pytorchs_events_stand_in_for_what_is_not_there(monkeypatch, given):
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "default_stream", lambda device: "the default stream")
    now = iter(range(10_000))

    class Event:
        def __init__(self, *, enable_timing):
            assert enable_timing

        at_ms = None  # as PyTorch's, it is nothing before its first record

        def record(self, stream):
            assert stream == "the default stream"
            self.is_first, self.at_ms = self.at_ms is None, next(now)

        def elapsed_time(self, other):
            return float(other.at_ms - self.at_ms)

    monkeypatch.setattr(torch.cuda, "Event", Event)
    driver = types.SimpleNamespace(cuEventCreate=None, cuEventRecord=None, cuEventElapsedTime=None)
    monkeypatch.setattr(gpu_stopwatch, "_driver", lambda: driver)
    watch = gpu_stopwatch.stopwatch_of(torch.device("cuda:0"), given)
    assert watch.name == "torch_events"
    mark = watch.start()
    for name in ("record", "elapsed_time"):
        monkeypatch.setattr(Event, name, lambda *_: pytest.fail("what a candidate put there was called"))
    lap = watch.stop(mark)
    assert watch.microseconds(lap) == 1000.0
    assert not any(event.is_first for event in lap)


def test_a_library_that_does_not_load_leaves_nothing_open():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(OSError):
            gpu_stopwatch._loaded(b"no library")
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(sys.platform != "linux", reason="the library is loaded from memory")
def test_two_stopwatches_of_one_library_do_not_share_marks(library):
    one, other = NativeEvents(library, Driver()), NativeEvents(library, Driver())
    one.start()
    assert (one.start(), other.start()) == (1, 0)
