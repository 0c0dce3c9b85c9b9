"""Inputs that the judge takes out of the caches, and what of them stays as it was."""

from __future__ import annotations

import statistics
import time

import pytest
import torch

from harness.protocol import cpu_cache_flush

flushes = pytest.mark.skipif(not cpu_cache_flush.can_flush_lines(), reason="this processor has no instruction for it, or forbids it")


@pytest.mark.parametrize("size_bytes", [0, 1, 63, 64, 65, 4096, 100_001])
def test_what_is_flushed_keeps_its_values(size_bytes):
    region = torch.randint(0, 256, (size_bytes,), dtype=torch.uint8)
    before = region.clone()
    cpu_cache_flush.flush_lines(region)
    assert torch.equal(region, before)


@flushes
@pytest.mark.alone
def test_what_was_read_a_moment_ago_has_to_come_from_memory():
    """One byte of each line, in an order that nothing foresees."""
    region = torch.zeros(1 << 18, dtype=torch.uint8)
    lines = 64 * torch.randperm(region.numel() // 64)
    out = torch.empty(lines.numel(), dtype=torch.uint8)

    def reading_us(flushing: bool) -> float:
        torch.index_select(region, 0, lines, out=out)
        if flushing:
            cpu_cache_flush.flush_lines(region)
        began = time.perf_counter_ns()
        torch.index_select(region, 0, lines, out=out)
        return (time.perf_counter_ns() - began) / 1e3

    cold, warm = zip(*((reading_us(True), reading_us(False)) for _ in range(100)))
    assert statistics.median(cold) > 1.3 * statistics.median(warm), (statistics.median(cold), statistics.median(warm))
