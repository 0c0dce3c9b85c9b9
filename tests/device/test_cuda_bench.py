"""The referee's half of the launches on a GPU."""

from __future__ import annotations

import pytest
import torch

from harness.inputs.sets import draw_set
from harness.wire import cuda_driver
from harness.wire.layout import REGION_BYTES

pytestmark = pytest.mark.gpu
DEVICE = torch.device("cuda:0")


def numbers():
    return [torch.rand(64, 64)]


@pytest.fixture(scope="module")
def bench():
    from harness.device.cuda import CudaBench

    return CudaBench(0)


def test_it_names_the_gpu_it_stands_on(bench):
    identity = bench.identity
    assert identity.kind == "cuda"
    assert identity.uuid.startswith("GPU-")
    assert identity.sm_count > 0
    assert identity.l2_bytes > 0
    assert bench.visible_devices() == {"CUDA_VISIBLE_DEVICES": identity.uuid}


def test_what_is_staged_is_masked_and_a_fresh_key_is_used_each_time(bench):
    bench.open(2, REGION_BYTES, REGION_BYTES)
    inputs = draw_set(numbers, DEVICE)
    bench.stage([inputs, inputs])
    first, second = (region[: inputs.region.numel()].clone() for region in bench._regions["staging"][:2])
    assert (first == inputs.region).float().mean() < 0.02
    assert (first == second).float().mean() < 0.02


def test_regions_are_dedicated_allocations_of_whole_two_mebibytes(bench):
    regions = bench.open(2, 5, REGION_BYTES + 1)["regions"]
    assert {region["bytes"] for region in regions["slots"] + regions["staging"]} == {REGION_BYTES}
    assert {region["bytes"] for region in regions["outboxes"]} == {2 * REGION_BYTES}
    handles = [region["handle"] for name in regions for region in regions[name]]
    assert len(set(handles)) == len(handles) == 6
    assert all(len(bytes.fromhex(handle)) == cuda_driver.IPC_HANDLE_BYTES for handle in handles)


def test_held_and_unheld_launches_take_about_the_same_time(bench):
    def squares():
        return [torch.rand(2048, 2048)]

    class Product(torch.nn.Module):
        def forward(self, x):
            return x @ x

    sets = [draw_set(squares, DEVICE) for _ in range(3)]
    bench.open(3, sets[0].region.numel(), sets[0].region.numel())
    bench.local_launches(Product(), sets, hold=False)
    held = bench.local_launches(Product(), sets, hold=True)
    plain = bench.local_launches(Product(), sets, hold=False)
    assert len(held.times_us) == 3
    assert held.times_us[-1] == pytest.approx(plain.times_us[-1], rel=0.5)


def test_the_gpu_is_well_and_its_bandwidth_is_that_of_a_gpu(bench):
    assert bench.unhealthy() is None
    assert 50 < bench.copy_gbytes_s() < 50_000
    peak = 2 * 128 * bench.identity.sm_count * 2.5e9 / 1e12  # 128 multiply-adds a clock, at more than any GPU's clock
    assert 0.2 * peak < bench.multiply_add_tflops() < peak
    assert 0 < bench.event_floor_us() < 1000
