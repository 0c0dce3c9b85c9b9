"""Stopwatches, the cold cache before them, and the promise that no candidate can bend either."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
import torch

from harness.build.toolchain import find_host_compiler
from harness.protocol import cpu_cache_flush
from harness.protocol.clocks import gpu_stopwatch, stopwatch

REPOSITORY = Path(__file__).resolve().parents[3]


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


@pytest.fixture(params=[gpu_stopwatch.NativeEvents.name, stopwatch.TorchEvents.name])
def watch(request):
    """A stopwatch of the first GPU, of each kind that there is."""
    library = gpu_stopwatch.compiled(find_host_compiler()) if request.param == gpu_stopwatch.NativeEvents.name else None
    made = gpu_stopwatch.stopwatch_of(torch.device("cuda:0"), library)
    assert made.name == request.param
    return made


@pytest.mark.gpu
def test_events_measure_the_legacy_stream_whichever_stream_is_current(watch):
    device = torch.device("cuda:0")
    with torch.cuda.stream(torch.cuda.Stream(device)):
        mark = watch.start()
        with torch.cuda.stream(torch.cuda.default_stream(device)):
            torch.cuda._sleep(20_000_000)
        lap = watch.stop(mark)
    torch.cuda.synchronize()
    assert watch.microseconds(lap) > 3000


@pytest.mark.gpu
def test_what_is_put_in_the_place_of_pytorchs_events_later_is_not_what_is_used(watch, monkeypatch):
    for name in ("record", "elapsed_time"):
        monkeypatch.setattr(torch.cuda.Event, name, lambda *_: pytest.fail("the patched method was used"))
    monkeypatch.setattr(torch.cuda, "Event", lambda **_: pytest.fail("the patched class was used"))
    lap = watch.stop(watch.start())
    torch.cuda.synchronize()
    assert watch.microseconds(lap) > 0


@pytest.mark.gpu
def test_events_agree_with_pytorchs_own_and_are_used_again_after_many(watch):
    for _ in range(stopwatch.MARKS):
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
    assert 256 * 1024 <= cpu_cache_flush.cpu_last_level_bytes() <= 4 << 30


def test_the_buffer_that_cools_a_cpu_is_the_cache_up_to_a_limit():
    assert cpu_cache_flush.cpu_flush_buffer_bytes((1 << 20) + 3) == 1 << 20
    assert cpu_cache_flush.cpu_flush_buffer_bytes(1 << 40) == cpu_cache_flush._CPU_MOST_BYTES
    region = torch.zeros(1 << 20, dtype=torch.uint8)
    cpu_cache_flush.CpuCacheFlush(region).run(7)
    assert set(region.view(torch.int32).tolist()) == {7}


def test_a_candidate_that_patches_torch_does_not_keep_the_cache_warm(monkeypatch):
    flush = cpu_cache_flush.CpuCacheFlush(torch.zeros(1 << 16, dtype=torch.uint8))
    monkeypatch.setattr(torch.Tensor, "fill_", lambda self, word: self)
    flush.run(9)
    assert flush.missed(9) == 0
    assert flush.missed(8) > 0
