"""The kernels that flush a GPU's L2 do what they say, and what they leave behind proves it."""

from __future__ import annotations

import secrets

import pytest
import torch

from harness.device.gpu_flush_buffers import GpuFlushBuffers
from harness.protocol import gpu_cache_flush, nvrtc

pytestmark = pytest.mark.gpu
DEVICE = torch.device("cuda:0")
BLOCKS = 64


@pytest.fixture
def place():
    """Where the word lies for the kernels."""
    return torch.zeros(1, dtype=torch.int64, device=DEVICE)


@pytest.fixture
def cubin():
    torch.zeros(1, device=DEVICE)
    return nvrtc.compile_cubin(gpu_cache_flush.SOURCE, *torch.cuda.get_device_capability(DEVICE))


@pytest.fixture
def cache(cubin):
    return GpuFlushBuffers(1 << 20, DEVICE, cubin, BLOCKS)


def players(cubin, place, cache, *, size_bytes=None, read=None):
    """A flush of the shared buffers, as a worker has one."""
    regions = cache.regions
    size_bytes = size_bytes or regions["written"].numel()
    read = regions["read"] if read is None else read
    return gpu_cache_flush.GpuCacheFlush(cubin, regions["written"].data_ptr(), read.data_ptr(), size_bytes, place.data_ptr(), BLOCKS)


def flushed(flush, place, cache, index=3):
    word = secrets.randbits(64)
    place.fill_(word - 2**64 if word >= 2**63 else word)
    flush.run(0, cache.regions["sums"].data_ptr() + index * gpu_cache_flush.SUM_BYTES)
    torch.cuda.synchronize()
    return word


def test_the_buffer_is_written_over_with_the_word_and_the_sum_is_that_of_the_formula(cubin, place):
    written = torch.zeros(4096, dtype=torch.int64, device=DEVICE)
    read = torch.randint(-(2**62), 2**62, (4096,), dtype=torch.int64, device=DEVICE)
    total = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    place.fill_(12345678901234567)
    numbers = written.data_ptr(), read.data_ptr(), 8 * 4096, place.data_ptr(), BLOCKS
    gpu_cache_flush.GpuCacheFlush(cubin, *numbers).run(0, total.data_ptr())
    assert set(written.tolist()) == {12345678901234567}
    expected = 0
    for value in read.tolist():
        product = ((value % 2**64) ^ 12345678901234567) * 0x9E3779B97F4A7C15 % 2**64
        expected += product ^ (product >> 32)
    assert int(total) % 2**64 == expected % 2**64


def test_a_whole_flush_is_believed_and_one_under_another_word_is_not(cubin, place, cache):
    word = flushed(players(cubin, place, cache), place, cache)
    assert cache.fault(3, word) is None
    assert "were not written over" in cache.fault(3, word ^ 1)


def test_a_flush_of_nine_tenths_is_seen(cubin, place, cache):
    whole = cache.regions["written"].numel()
    word = flushed(players(cubin, place, cache, size_bytes=whole * 9 // 10 // 16 * 16), place, cache)
    assert "were not written over" in cache.fault(3, word)


def test_a_buffer_that_was_not_read_is_seen_though_the_other_was_written(cubin, place, cache):
    word = flushed(players(cubin, place, cache), place, cache)
    cache.regions["sums"].view(torch.int64)[3] += 1
    assert "was not read" in cache.fault(3, word)


def test_a_buffer_emptied_by_a_worker_does_not_make_its_sum_easy(cubin, place, cache):
    cache.regions["read"].zero_()
    word = flushed(players(cubin, place, cache), place, cache)
    assert "was not read" in cache.fault(3, word)
