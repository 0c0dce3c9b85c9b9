"""What slots keep from one call to the next: open regions, and the tensors in them."""

from __future__ import annotations

import pytest
import torch

from harness.protocol.layout import plan, region_bytes
from harness.worker import launch_slots
from harness.worker.launch_slots import CudaSlots, Views


@pytest.fixture
def specs():
    return plan([torch.zeros(3, 5), torch.zeros(7, dtype=torch.int64)])


@pytest.fixture
def regions(specs):
    return [torch.randint(256, (region_bytes(specs),), dtype=torch.uint8) for _ in range(2)]


def test_views_are_the_tensors_of_their_region_and_made_once(specs, regions):
    views = Views(regions)
    for index, region in enumerate(regions):
        found = views.of(index, specs)
        assert all(a is b for a, b in zip(found, views.of(index, specs), strict=True))
        assert [each.data_ptr() for each in found] == [spec.view(region).data_ptr() for spec in specs]
        assert [(each.shape, each.dtype) for each in found] == [((3, 5), torch.float32), ((7,), torch.int64)]


def test_another_layout_of_the_same_region_has_its_own_views(specs, regions):
    views, other = Views(regions), plan([torch.zeros(2, 2)])
    first = views.of(0, specs)
    assert [each.shape for each in views.of(0, other)] == [(2, 2)]
    assert views.of(0, specs)[0] is first[0]


def test_what_somebody_does_to_a_fresh_view_is_not_seen_in_the_next(specs, regions):
    views = Views(regions)
    before = regions[0].clone()
    given = views.fresh(0, specs)[0]
    given.mine = 1
    given.requires_grad_()
    given.data = torch.ones(1)
    later = views.fresh(0, specs)[0]
    assert later is not given and not hasattr(later, "mine") and not later.requires_grad
    assert later.shape == (3, 5)
    assert torch.equal(regions[0], before)
    later.fill_(2.0)
    assert bool((specs[0].view(regions[0]) == 2).all())


@pytest.fixture
def slots(monkeypatch):
    """The slots of a GPU that is not there; `slots.log` has what was opened and closed."""
    made = CudaSlots.__new__(CudaSlots)
    made._opened, made.device, made.log = {}, torch.device("cpu"), []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

    def opening(handle):
        made.log.append(("open", handle[0]))
        return 1000 + handle[0]

    monkeypatch.setattr(launch_slots.cuda_driver, "open_ipc", opening)
    monkeypatch.setattr(launch_slots.cuda_driver, "close_ipc", lambda address: made.log.append(("close", address - 1000)))
    monkeypatch.setattr(
        launch_slots.cuda_driver, "as_bytes", lambda address, size_bytes, device: torch.zeros(size_bytes, dtype=torch.uint8)
    )
    return made


def named(**numbers):
    return {
        name: [{"handle": bytes([number] * 64).hex(), "bytes": 4096} for number in given]
        for name, given in numbers.items()
    }


def test_regions_that_are_named_again_stay_open_and_the_others_are_closed(slots):
    slots.open(named(staging=[1], slots=[2], outboxes=[3]))
    assert sorted(slots.log) == [("open", 1), ("open", 2), ("open", 3)]
    slots.log.clear()
    slots.open(named(staging=[1, 4], slots=[2, 5], outboxes=[3, 6]))
    assert sorted(slots.log) == [("open", 4), ("open", 5), ("open", 6)]
    assert len(slots._slots) == 2
    slots.log.clear()
    slots.open(named(staging=[1], slots=[2], outboxes=[7]))
    assert sorted(slots.log) == [("close", 3), ("close", 4), ("close", 5), ("close", 6), ("open", 7)]
    assert slots._staging == [1001] and len(slots._slots) == 1
