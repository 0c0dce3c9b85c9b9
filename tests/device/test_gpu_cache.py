"""The kernels that flush a GPU's L2 do what they say, and what they leave behind proves it."""

from __future__ import annotations

import secrets

import pytest
import torch

from harness.device.gpu_cache import GpuCache
from harness.wire import cooling, cuda_driver, nvrtc
from harness.wire.arena import FLAGS_BYTES, WORD_BYTE, Arena

pytestmark = pytest.mark.gpu
DEVICE = torch.device("cuda:0")
BLOCKS = 64


@pytest.fixture
def flags():
    flags = Arena.create().flags()
    words = cuda_driver.map_host(flags.address, FLAGS_BYTES)
    yield flags, words
    torch.cuda.synchronize()
    cuda_driver.unmap_host(flags.address)


@pytest.fixture
def cubin():
    torch.zeros(1, device=DEVICE)
    return nvrtc.compile_cubin(cooling.SOURCE, *torch.cuda.get_device_capability(DEVICE))


@pytest.fixture
def cache(cubin, flags):
    return GpuCache(1 << 20, DEVICE, cubin, *flags, BLOCKS)


def players(cubin, flags, cache, *, size_bytes=None, read=None):
    """A cooler on the shared buffers, as a player has one."""
    regions = cache.regions
    size_bytes = size_bytes or regions["written"].numel()
    read = regions["read"] if read is None else read
    word_address = flags[1] + WORD_BYTE
    return cooling.Cooler(cubin, regions["written"].data_ptr(), read.data_ptr(), size_bytes, word_address, BLOCKS)


def cooled(cooler, flags, cache, index=3):
    word = secrets.randbits(64)
    flags[0].set_word(word)
    cooler.run(0, cache.regions["sums"].data_ptr() + index * cooling.SUM_BYTES)
    torch.cuda.synchronize()
    return word


def test_the_buffer_is_written_over_with_the_word_and_the_sum_is_that_of_the_formula(cubin, flags):
    written = torch.zeros(4096, dtype=torch.int64, device=DEVICE)
    read = torch.randint(-(2**62), 2**62, (4096,), dtype=torch.int64, device=DEVICE)
    total = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    flags[0].set_word(12345678901234567)
    numbers = written.data_ptr(), read.data_ptr(), 8 * 4096, flags[1] + WORD_BYTE, BLOCKS
    cooling.Cooler(cubin, *numbers).run(0, total.data_ptr())
    assert set(written.tolist()) == {12345678901234567}
    expected = 0
    for value in read.tolist():
        product = ((value % 2**64) ^ 12345678901234567) * 0x9E3779B97F4A7C15 % 2**64
        expected += product ^ (product >> 32)
    assert int(total) % 2**64 == expected % 2**64


def test_a_whole_flush_is_believed_and_one_under_another_word_is_not(cubin, flags, cache):
    word = cooled(players(cubin, flags, cache), flags, cache)
    assert cache.fault(3, word) is None
    assert "were not written over" in cache.fault(3, word ^ 1)


def test_a_flush_of_nine_tenths_is_seen(cubin, flags, cache):
    whole = cache.regions["written"].numel()
    word = cooled(players(cubin, flags, cache, size_bytes=whole * 9 // 10 // 16 * 16), flags, cache)
    assert "were not written over" in cache.fault(3, word)


def test_a_buffer_that_was_not_read_is_seen_though_the_other_was_written(cubin, flags, cache):
    word = cooled(players(cubin, flags, cache), flags, cache)
    cache.regions["sums"].view(torch.int64)[3] += 1
    assert "was not read" in cache.fault(3, word)


def test_a_buffer_emptied_by_a_player_does_not_make_its_sum_easy(cubin, flags, cache):
    cache.regions["read"].zero_()
    word = cooled(players(cubin, flags, cache), flags, cache)
    assert "was not read" in cache.fault(3, word)
