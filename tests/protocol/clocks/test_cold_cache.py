"""Writing over a CPU's cache, as many threads at it whatever a candidate has set."""

from __future__ import annotations

import pytest
import torch

from harness.protocol.clocks import cold_cache


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield before
    torch.set_num_threads(before)


def test_all_is_written_over_with_the_word():
    region = torch.zeros(8 * 5000, dtype=torch.uint8)
    evictor = cold_cache.CpuCacheFlush(region)
    evictor.run(7)
    assert evictor.missed(7) == 0 and evictor.missed(8) > 4000
    region.view(torch.int64)[: 2500] = 6
    assert evictor.missed(7) > 1000


def test_a_candidate_that_sets_pytorchs_threads_changes_nothing_of_it(threads, monkeypatch):
    seen = []
    fill = cold_cache._fill
    monkeypatch.setattr(cold_cache, "_fill", lambda *what: seen.append(torch.get_num_threads()) or fill(*what))
    evictor = cold_cache.CpuCacheFlush(torch.zeros(4096, dtype=torch.uint8), threads=2)
    for own in (1, 2, 3):
        torch.set_num_threads(own)
        evictor.run(own)
        assert (evictor.missed(own), torch.get_num_threads()) == (0, own)
    assert seen == [2, 2, 2]
