"""Writing over a CPU's cache, with as many threads and by nobody's code but the C library's, whatever a candidate has set."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from harness.protocol import cpu_cache_flush


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield before
    torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [None, 1, 2, 3, 64])
@pytest.mark.parametrize("size_bytes", [4096, 8 * 5000, (1 << 20) + 4096])
def test_all_is_written_over_with_the_word_and_nothing_else(threads, size_bytes):
    memory = torch.zeros(size_bytes + 128, dtype=torch.uint8)
    region = memory[64:-64]
    flush = cpu_cache_flush.CpuCacheFlush(region, threads)
    for word in (7, cpu_cache_flush.fresh_word()):
        flush.run(word)
        assert (region.view(torch.int32) == word).all() and flush.missed(word) == 0
        assert flush.missed(word + 1) > 1000
    assert not memory[:64].any() and not memory[-64:].any()


def test_what_was_left_out_is_missed():
    region = torch.zeros(8 * 5000, dtype=torch.uint8)
    flush = cpu_cache_flush.CpuCacheFlush(region)
    flush.run(7)
    region.view(torch.int32)[: 5000] = 6
    assert flush.missed(7) > 1000


def test_a_candidate_that_sets_pytorchs_threads_changes_nothing_of_it(threads):
    flush = cpu_cache_flush.CpuCacheFlush(torch.zeros(4096, dtype=torch.uint8), threads=2)
    for own in (1, 2, 3):
        torch.set_num_threads(own)
        flush.run(own)
        assert (flush.missed(own), torch.get_num_threads()) == (0, own)


def test_words_are_fresh_and_fit_into_what_is_written():
    words = {cpu_cache_flush.fresh_word() for _ in range(1000)}
    assert len(words) > 990 and all(0 < word < 1 << cpu_cache_flush.WORD_BITS for word in words)


_FILLS = """
import torch
from torch.overrides import TorchFunctionMode
from harness.protocol.cpu_cache_flush import CpuCacheFlush
filled = []
class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), named=None):
        filled.append(arguments[0].data_ptr())
        raise RuntimeError("this fill fails")
region = torch.zeros(1 << 14, dtype=torch.int32)
flush = CpuCacheFlush(region.view(torch.uint8), 2)
library = torch.library.Library("aten", "IMPL")
library.impl("fill_.Scalar", lambda tensor, word: filled.append(tensor.data_ptr()) or tensor, "CPU")
with Mode():
    flush.run(5)
flush.run(6)
assert set(memoryview(region.numpy())) == {6}
assert len(filled) == 2 and region.data_ptr() not in filled, filled  # what lies beside, for the sake of threads alone
"""


@pytest.mark.processes
def test_no_operator_and_no_mode_of_a_candidates_writes_any_of_it_or_hinders_it():
    ran = subprocess.run([sys.executable, "-c", _FILLS], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
