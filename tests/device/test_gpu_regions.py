"""Regions that workers share: as many and as large as were asked for, on a driver that only counts."""

from __future__ import annotations

import pytest
import torch

from harness.device import gpu_regions
from harness.device.gpu_regions import GpuRegions, handle_of, shared_region
from harness.protocol.layout import REGION_BYTES

CPU = torch.device("cpu")


class Driver:
    """Addresses in order; `room` says how many allocations succeed."""

    DriverError = RuntimeError

    def __init__(self):
        self.sizes, self.freed, self.room = {}, [], 100

    def allocate(self, size_bytes):
        if not self.room:
            raise RuntimeError("out of memory")
        self.room -= 1
        address = 1 + len(self.sizes)
        self.sizes[address] = size_bytes
        return address

    def as_bytes(self, address, size_bytes, device):
        region = torch.empty(size_bytes, dtype=torch.uint8, device="meta")
        region.data_ptr = lambda: address
        return region

    def free(self, address):
        self.freed.append(address)

    def ipc_handle(self, address):
        return bytes([address])


@pytest.fixture
def driver(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(gpu_regions, "cuda_driver", driver)
    monkeypatch.setattr(gpu_regions.torch.cuda, "empty_cache", lambda: None)
    return driver


def test_a_region_is_whole_multiples_of_what_the_driver_shares(driver):
    region = shared_region(REGION_BYTES + 1, CPU)
    assert driver.sizes == {1: 2 * REGION_BYTES} and region.numel() == 2 * REGION_BYTES
    assert handle_of(region) == {"handle": "01", "bytes": 2 * REGION_BYTES}


def test_what_is_there_and_large_enough_stays(driver):
    regions, waited = GpuRegions(("slots", "outboxes"), CPU), []
    regions.ensure("slots", 2, 100, lambda: waited.append(1))
    regions.ensure("slots", 1, REGION_BYTES, lambda: waited.append(2))
    assert waited == [1] and driver.freed == [] and len(regions["slots"]) == 2


def test_all_that_there_are_can_be_given_back(driver):
    regions = GpuRegions(("slots", "outboxes"), CPU)
    regions.ensure("slots", 2, 100, lambda: None)
    regions.free()
    assert sorted(driver.freed) == sorted(driver.sizes) and regions.all() == []


@pytest.mark.parametrize(("count", "size_bytes"), [(3, 100), (2, REGION_BYTES + 1)], ids=["more", "larger"])
def test_where_they_are_too_few_or_too_small_all_are_made_anew_after_a_wait(driver, count, size_bytes):
    regions, freed_by_then = GpuRegions(("slots",), CPU), []
    regions.ensure("slots", 2, 100, lambda: None)
    regions.ensure("slots", count, size_bytes, lambda: freed_by_then.append(list(driver.freed)))
    assert freed_by_then == [[]] and driver.freed == [1, 2]
    assert [each.data_ptr() for each in regions["slots"]] == list(range(3, 3 + count)) and len(regions.all()) == count


def test_where_there_is_no_room_no_freed_address_is_left(driver):
    regions = GpuRegions(("slots",), CPU)
    regions.ensure("slots", 2, 100, lambda: None)
    driver.room = 1
    with pytest.raises(RuntimeError, match="out of memory"):
        regions.ensure("slots", 3, 100, lambda: None)
    assert [each.data_ptr() for each in regions.all()] == [3]
    driver.room = 3
    regions.ensure("slots", 3, 100, lambda: None)
    assert driver.freed == [1, 2, 3] and [each.data_ptr() for each in regions.all()] == [4, 5, 6]
