"""Stopwatches, the cold cache before them, and the promise that no candidate can bend either."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from harness.clocks import cold, heap, stopwatch
from harness.clocks.openmp import SPIN, shorten_spinning

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_monotonic_clock_measures_a_sleep_in_microseconds():
    clock = stopwatch.MonotonicClock()
    mark = clock.start()
    time.sleep(0.02)
    measured_us = clock.microseconds(clock.stop(mark))
    assert 20_000 <= measured_us < 2_000_000


def test_replacing_the_clock_of_the_time_module_later_changes_nothing(monkeypatch):
    monkeypatch.setattr(time, "perf_counter_ns", lambda: 0)
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    clock = stopwatch.MonotonicClock()
    mark = clock.start()
    sum(range(1000))
    assert clock.microseconds(clock.stop(mark)) > 0


@pytest.mark.gpu
def test_cuda_events_measure_the_legacy_stream_whichever_stream_is_current():
    device = torch.device("cuda:0")
    watch = stopwatch.CudaEvents(device)
    with torch.cuda.stream(torch.cuda.Stream(device)):
        mark = watch.start()
        with torch.cuda.stream(torch.cuda.default_stream(device)):
            torch.cuda._sleep(20_000_000)
        lap = watch.stop(mark)
    torch.cuda.synchronize()
    assert watch.microseconds(lap) > 3000


@pytest.mark.gpu
def test_a_patched_event_class_is_not_the_one_that_is_used(monkeypatch):
    monkeypatch.setattr(torch.cuda, "Event", lambda **_: pytest.fail("the patched class was used"))
    watch = stopwatch.CudaEvents(torch.device("cuda:0"))
    lap = watch.stop(watch.start())
    torch.cuda.synchronize()
    assert watch.microseconds(lap) > 0


@pytest.mark.gpu
def test_events_agree_with_pytorchs_own_and_are_used_again_after_many():
    watch = stopwatch.CudaEvents(torch.device("cuda:0"))
    for _ in range(stopwatch._EVENTS):
        watch.start()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    mark = watch.start()
    torch.cuda._sleep(20_000_000)
    lap = watch.stop(mark)
    last.record()
    torch.cuda.synchronize()
    assert watch.microseconds(lap) == pytest.approx(1e3 * first.elapsed_time(last), rel=0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="read from Linux's files")
def test_the_last_level_cache_is_as_large_as_a_cache_can_be():
    assert 256 * 1024 <= cold.cpu_last_level_bytes() <= 4 << 30


def test_the_buffer_that_cools_a_cpu_is_the_cache_up_to_a_limit():
    assert cold.cpu_evictor_bytes((1 << 20) + 3) == 1 << 20
    assert cold.cpu_evictor_bytes(1 << 40) == cold._CPU_MOST_BYTES
    region = torch.zeros(1 << 20, dtype=torch.uint8)
    cold.KeyedEvictor(region).run(7)
    assert set(region.view(torch.int64).tolist()) == {7}


def test_a_candidate_that_patches_torch_does_not_keep_the_cache_warm(monkeypatch):
    evictor = cold.KeyedEvictor(torch.zeros(1 << 16, dtype=torch.uint8))
    monkeypatch.setattr(torch.Tensor, "fill_", lambda self, word: self)
    evictor.run(9)
    assert evictor.missed(9) == 0
    assert evictor.missed(8) > 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
def test_freed_memory_is_not_faulted_in_again():
    program = (
        "import resource, sys, torch\n"
        "from harness.clocks.heap import keep_freed_memory\n"
        "kept = keep_freed_memory()\n"
        "def faults():\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    for _ in range(20):\n        torch.ones(4 << 20)\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        "faults()\n"
        "print(int(kept), faults())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    kept, faults = map(int, done.stdout.split())
    if not kept:
        pytest.skip("the C library has no mallopt")
    assert faults < 2000  # 20 blocks of 16 MiB are 82 000 pages


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
@pytest.mark.parametrize("advice", [heap._MADV_POPULATE_WRITE, 12345], ids=["at once", "by an older Linux"])
def test_the_heap_that_grows_ahead_has_its_pages(advice):
    program = (
        "from harness.clocks import heap\n"
        f"heap._MADV_POPULATE_WRITE = {advice}\n"
        "def resident():\n    return int(open('/proc/self/statm').read().split()[1])\n"
        "before = resident()\n"
        "print(int(heap.keep_freed_memory()), resident() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    kept, pages = map(int, done.stdout.split())
    if not kept:
        pytest.skip("the C library has no mallopt")
    assert pages * mmap.PAGESIZE > 0.9 * heap._BLOCKS * heap._BLOCK_BYTES


def test_a_c_library_without_mallopt_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert heap.keep_freed_memory() is False


def test_spinning_is_shortened_unless_the_user_chose_otherwise():
    environment = {"KMP_BLOCKTIME": "200"}
    shorten_spinning(environment)
    assert environment == {**SPIN, "KMP_BLOCKTIME": "200"}
    assert set(SPIN) <= {"GOMP_SPINCOUNT", "KMP_BLOCKTIME"}
