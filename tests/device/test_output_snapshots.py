"""Pieces of outputs, held against what the outboxes hold later."""

from __future__ import annotations

import pytest
import torch

from harness.device.output_snapshots import OutputSnapshots

DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]
MIB = 1 << 20


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [1, 1000, MIB, 3 * MIB + 5])
def test_an_outbox_that_is_written_over_has_changed_and_no_other(device, size):
    outboxes = [torch.full((size,), value, dtype=torch.uint8, device=device) for value in (1, 2, 3)]
    snapshots = OutputSnapshots(torch.device(device))
    for index, outbox in enumerate(outboxes):
        snapshots.take(index, outbox)
    assert snapshots.changed(outboxes) == []
    outboxes[1].fill_(9)
    assert snapshots.changed(outboxes) == [1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("stripe", range(0, 30))
def test_a_stripe_of_a_thirtieth_is_seen_wherever_it_lies(device, stripe):
    outbox = torch.zeros(30 * MIB, dtype=torch.uint8, device=device)
    snapshots = OutputSnapshots(torch.device(device))
    snapshots.take(0, outbox)
    outbox[stripe * MIB: (stripe + 1) * MIB] = 1
    assert snapshots.changed([outbox]) == [0]


@pytest.mark.parametrize("device", DEVICES)
def test_a_new_queue_forgets_the_old_pieces(device):
    outbox = torch.zeros(2 * MIB, dtype=torch.uint8, device=device)
    snapshots = OutputSnapshots(torch.device(device))
    for value in (1, 2):
        snapshots.forget()
        outbox.fill_(value)
        snapshots.take(0, outbox)
        assert snapshots.changed([outbox]) == []
    outbox.fill_(3)
    snapshots.forget()
    assert snapshots.changed([outbox]) == []


@pytest.mark.gpu
def test_on_a_gpu_a_piece_is_there_while_a_kernel_keeps_the_device_busy():
    """It must not wait for kernels, or what is late would be there by then."""
    outbox = torch.zeros(2 * MIB, dtype=torch.uint8, device="cuda:0")
    snapshots, busy = OutputSnapshots(torch.device("cuda:0")), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(busy):
        torch.cuda._sleep(2_000_000_000)  # about a second
        outbox.fill_(1)
    snapshots.take(0, outbox)
    assert not busy.query()
    torch.cuda.synchronize()
    assert snapshots.changed([outbox]) == [0]
