"""The judge's half of the launches on the CPU."""

from __future__ import annotations

import pytest
import torch

from harness.device.backend import CacheFlushed, LaunchReached
from harness.device.cpu import CpuBackend
from harness.protocol.frames import BadFrame, Channel, channel_pair
from harness.protocol.layout import REGION_BYTES
from harness.reference.inputs.late_inputs import late_inputs
from harness.reference.inputs.sets import draw_set


def numbers():
    return [torch.rand(64, 64)]


@pytest.fixture(scope="module")
def backend():
    return CpuBackend()


@pytest.fixture
def ends():
    near, far = channel_pair()
    other = Channel(far)
    yield near, other
    near.close()
    other.close()


def test_it_says_what_it_stands_on(backend):
    identity = backend.identity
    assert identity.kind == "cpu"
    assert identity.name
    assert identity.sm_count >= 1
    assert identity.memory_bytes > 1 << 28
    assert identity.torch == torch.__version__
    assert (backend.kind, backend.transport, backend.timer) == ("cpu", "shared_memory", "monotonic")


def test_regions_are_shared_memory_of_the_arena_and_reused(backend):
    command = backend.open(2, REGION_BYTES, REGION_BYTES)
    assert [len(command["regions"][name]) for name in ("slots", "outboxes")] == [2, 2]
    offsets = [region["offset"] for name in ("slots", "outboxes") for region in command["regions"][name]]
    assert len(set(offsets)) == 4
    assert backend.open(1, REGION_BYTES, REGION_BYTES)["regions"]["slots"] == command["regions"]["slots"][:1]
    end = backend.arena.end
    backend.open(2, REGION_BYTES, REGION_BYTES)
    assert backend.arena.end == end


def test_inputs_are_in_the_slot_at_their_turn_and_not_before(backend, ends):
    near, far = ends
    backend.open(1, REGION_BYTES, REGION_BYTES)
    backend._slots[0][1].zero_()
    inputs = draw_set(numbers, backend.torch_device)
    backend.upload_inputs([inputs])
    assert not backend._slots[0][1].any()
    backend.release(near, 7, 0)
    assert far.receive(5)["go"] == 7
    assert backend.slots_unchanged([inputs]) == [True]


def test_a_set_that_lacks_pieces_is_complete_when_its_window_opens_and_not_before(backend, ends):
    near, _ = ends
    backend.open(2, REGION_BYTES, REGION_BYTES)
    first, second, other = (draw_set(numbers, backend.torch_device) for _ in range(3))
    lacking = late_inputs(second, other, 1)
    backend.upload_inputs([first, second], lacking)
    for index, inputs in enumerate((first, second)):
        backend.release(near, 4 + index, index)
        assert backend.slots_unchanged([first, second])[index] is (index == 0)
        backend.open_window(4 + index, index)
        assert backend.slots_unchanged([first, second])[index]
        assert backend._flags.window == 4 + index
    backend.upload_inputs([first, second])
    backend.release(near, 7, 1)
    assert backend.slots_unchanged([first, second]) == [True, True]


def test_one_changed_byte_in_the_slot_is_seen(backend, ends):
    near, _ = ends
    backend.open(1, REGION_BYTES, REGION_BYTES)
    inputs = draw_set(numbers, backend.torch_device)
    backend.upload_inputs([inputs])
    backend.release(near, 1, 0)
    backend._slots[0][1][100] ^= 1
    assert backend.slots_unchanged([inputs]) == [False]


def test_each_turn_has_a_word_of_its_own_that_the_cache_is_to_be_written_over_with(backend, ends):
    near, far = ends
    backend.open(1, REGION_BYTES, REGION_BYTES)
    backend.upload_inputs([draw_set(numbers, backend.torch_device)])
    words = set()
    for sequence in (1, 2):
        backend.release(near, sequence, 0)
        words.add(far.receive(5)["word"])
        assert "were not written over" in backend.flush_fault(0, inspect=False)
        backend._cache_flush.run(backend._word)
        assert backend.flush_fault(0, inspect=False) is None
    assert len(words) == 2


def test_turns_and_frames_are_told_apart_and_silence_is_none(backend, ends):
    near, far = ends
    far.send({"flushed": 3})
    assert backend.poll(near, 5) == CacheFlushed(3)
    far.send({"turn": 3})
    far.send({"queued": 1})
    assert backend.poll(near, 5) == LaunchReached(3)
    assert backend.poll(near, 5) == {"queued": 1}
    assert backend.poll(near, 0.01) is None


@pytest.mark.parametrize("word", ["turn", "flushed"])
@pytest.mark.parametrize("number", ["x", None, [], {}, 1.5, True])
def test_a_turn_or_a_flush_that_is_no_number_is_no_frame(backend, ends, word, number):
    near, far = ends
    far.send({word: number})
    with pytest.raises(BadFrame):
        backend.poll(near, 5)


def test_the_judges_own_launches_give_one_time_each_and_leave_the_inputs(backend):
    backend.open(3, REGION_BYTES, REGION_BYTES)
    sets = [draw_set(numbers, backend.torch_device) for _ in range(3)]
    made = backend.local_launches(torch.nn.Identity(), sets, gate=False)
    assert len(made.times_us) == 3
    assert all(time_us > 0 for time_us in made.times_us)
    assert made.end_to_end_us > 0
    assert backend.slots_unchanged(sets) == [True] * 3


def test_what_cannot_be_read_on_a_cpu_is_empty(backend):
    reading = backend.telemetry(set())
    assert reading.sm_mhz is reading.watts is reading.throttle is reading.other_processes is None
    assert backend.unhealthy() is None


def test_bandwidth_and_the_stopwatchs_own_time_are_plausible(backend):
    assert 0.1 < backend.copy_gbytes_s() < 10_000
    assert 0 < backend.event_floor_us() < 1000


def test_the_rate_of_multiply_adds_is_that_of_a_cpu(backend):
    assert 0.001 < backend.multiply_add_tflops() < 100


def test_a_worker_is_shown_no_gpu(backend):
    assert backend.visible_devices() == {"CUDA_VISIBLE_DEVICES": ""}
