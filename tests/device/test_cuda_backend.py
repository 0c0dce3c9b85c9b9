"""The judge's half of the launches on a GPU."""

from __future__ import annotations

import pytest
import torch

from harness.protocol import cuda_driver
from harness.protocol.layout import REGION_BYTES
from harness.protocol.masking import Mask
from harness.reference.inputs.late_inputs import late_inputs
from harness.reference.inputs.sets import draw_set

pytestmark = pytest.mark.gpu
DEVICE = torch.device("cuda:0")


def numbers():
    return [torch.rand(64, 64)]


@pytest.fixture(scope="module")
def backend():
    from harness.device.cuda import CudaBackend

    return CudaBackend(0)


def test_it_names_the_gpu_it_stands_on(backend):
    identity = backend.identity
    assert identity.kind == "cuda"
    assert identity.uuid.startswith("GPU-")
    assert identity.sm_count > 0
    assert identity.l2_bytes > 0
    assert backend.visible_devices() == {"CUDA_VISIBLE_DEVICES": identity.uuid}


def test_without_a_host_compiler_it_times_by_pytorchs_events_and_tells_the_worker_so(backend, monkeypatch):
    assert backend.timer == "native_events" and backend.prepare_command()["stopwatch"]
    monkeypatch.setattr("harness.device.cuda.find_host_compiler", lambda: None)
    without = type(backend)(0)
    assert without.timer == "torch_events" and without.prepare_command()["stopwatch"] is None
    assert 0 < without.event_floor_us() < 50


def test_what_is_staged_is_masked_and_a_fresh_key_is_used_each_time(backend):
    backend.open(2, REGION_BYTES, REGION_BYTES)
    inputs = draw_set(numbers, DEVICE)
    backend.upload_inputs([inputs, inputs])
    first, second = (region[: inputs.region.numel()].clone() for region in backend._regions["staging"][:2])
    assert (first == inputs.region).float().mean() < 0.02
    assert (first == second).float().mean() < 0.02


def test_each_set_is_under_the_mask_of_its_own_key_and_so_are_the_pieces_that_come_late(backend):
    backend.open(3, REGION_BYTES, REGION_BYTES)
    sets = [draw_set(numbers, DEVICE) for _ in range(3)]
    lacking = late_inputs(sets[1], draw_set(numbers, DEVICE), 1)
    backend.upload_inputs(sets, lacking)

    def opened(region, key):
        place = torch.frombuffer(bytearray(key), dtype=torch.uint8).to(DEVICE)
        target = torch.zeros_like(region)
        Mask(backend._cubin, place.data_ptr(), 64).apply(0, region.data_ptr(), target.data_ptr(), region.numel())
        torch.cuda.synchronize()
        return target

    found = [opened(region, key) for region, key in zip(backend._regions["staging"], backend._keys)]
    expected = [sets[0].region, lacking.lacking(sets[1]), sets[2].region]
    assert all(torch.equal(own[: other.numel()], other) for own, other in zip(found, expected))
    records = lacking.records().view(torch.uint8).flatten()
    assert torch.equal(opened(backend._records, backend._opening_key)[: records.numel()], records)
    assert len({*backend._keys, backend._opening_key}) == 4


def test_one_changed_byte_in_one_of_the_slots_is_seen(backend):
    backend.open(3, REGION_BYTES, REGION_BYTES)
    sets = [draw_set(numbers, DEVICE) for _ in range(3)]
    for slot, inputs in zip(backend._regions["slots"], sets):
        slot[: inputs.region.numel()].copy_(inputs.region)
    assert list(backend.slots_unchanged(sets)) == [True, True, True]
    backend._regions["slots"][1][REGION_BYTES - 1] ^= 1
    assert list(backend.slots_unchanged(sets)) == [True, False, True]


def test_outputs_are_taken_whole_and_a_change_after_the_snapshot_is_seen(backend):
    backend.open(2, REGION_BYTES, 2 * REGION_BYTES)
    backend.open(2, REGION_BYTES, REGION_BYTES)
    outboxes = backend._regions["outboxes"]
    for outbox in outboxes:
        outbox.random_()
    backend.upload_inputs([draw_set(numbers, DEVICE) for _ in range(2)])
    for index in range(2):
        backend.snapshot(index)
    backend.take_outputs(2)
    assert all(torch.equal(backend.outbox(index), outboxes[index][:REGION_BYTES]) for index in range(2))
    assert backend.written_late() == []
    outboxes[1] ^= 1
    backend.take_outputs(2)
    assert backend.written_late() == [1]


def test_regions_are_dedicated_allocations_of_whole_two_mebibytes(backend):
    regions = backend.open(2, 5, REGION_BYTES + 1)["regions"]
    assert {region["bytes"] for region in regions["slots"] + regions["staging"]} == {REGION_BYTES}
    assert {region["bytes"] for region in regions["outboxes"]} == {2 * REGION_BYTES}
    handles = [region["handle"] for name in regions for region in regions[name]]
    assert len(set(handles)) == len(handles)
    assert all(len(each) >= 2 for each in regions.values())
    assert all(len(bytes.fromhex(handle)) == cuda_driver.IPC_HANDLE_BYTES for handle in handles)


class Remembering(torch.nn.Module):
    """Keeps what each call was given, and returns its own parameter."""

    def __init__(self):
        super().__init__()
        self.own = torch.nn.Parameter(torch.ones(64, 64, device=DEVICE))
        self.given = []

    def forward(self, x):
        self.given.append(x.clone())
        return self.own


@pytest.mark.parametrize("gate", [False, True])
def test_own_launches_have_each_its_own_set_and_leave_the_models_memory_alone(backend, gate):
    sets, model = [draw_set(numbers, DEVICE) for _ in range(6)], Remembering()
    backend.open(6, REGION_BYTES, REGION_BYTES)
    for _ in range(3):
        model.given = []
        made = backend.local_launches(model, sets, gate=gate)
        assert len(made.times_us) == 6 and made.hidden is (True if gate else None)
        assert all(torch.equal(found, inputs.tensors()[0]) for found, inputs in zip(model.given, sets, strict=True))
    assert bool((model.own == 1).all())
    assert list(backend.slots_unchanged(sets)) == [True] * 6


def test_own_launches_of_a_model_that_synchronises_are_let_go_in_time(backend):
    class Synchronising(torch.nn.Module):
        def forward(self, x):
            total = x.sum()
            torch.cuda.synchronize()
            return total

    sets = [draw_set(numbers, DEVICE) for _ in range(2)]
    backend.open(2, REGION_BYTES, REGION_BYTES)
    made = backend.local_launches(Synchronising(), sets, gate=True)
    assert made.hidden is False and all(time_us > 0 for time_us in made.times_us)
    again = backend.local_launches(Remembering(), sets, gate=True)
    assert again.hidden is True


def test_held_and_ungated_launches_take_about_the_same_time(backend):
    def squares():
        return [torch.rand(2048, 2048)]

    class Product(torch.nn.Module):
        def forward(self, x):
            return x @ x

    sets = [draw_set(squares, DEVICE) for _ in range(3)]
    backend.open(3, sets[0].region.numel(), sets[0].region.numel())
    backend.local_launches(Product(), sets, gate=False)
    held, plain = (
        [backend.local_launches(Product(), sets, gate=gate) for _ in range(5)] for gate in (True, False)
    )
    assert all(len(made.times_us) == 3 for made in held)
    # What is not held has the host's time in it where that is slow, as it is now and then beside other work.
    fastest_us = [min(made.times_us[-1] for made in each) for each in (held, plain)]
    assert fastest_us[0] == pytest.approx(fastest_us[1], rel=0.5)


def test_the_gpu_is_well_and_its_bandwidth_is_that_of_a_gpu(backend):
    assert backend.unhealthy() is None
    assert 50 < backend.copy_gbytes_s() < 50_000
    peak = 2 * 128 * backend.identity.sm_count * 2.5e9 / 1e12  # 128 multiply-adds a clock, at more than any GPU's clock
    assert 0.2 * peak < backend.multiply_add_tflops() < peak
    assert 0 < backend.event_floor_us() < 1000
