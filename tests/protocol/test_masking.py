"""The one-time mask over inputs: the same kernel puts it on and takes it off, and only the key makes them one."""

from __future__ import annotations

import time
from contextlib import contextmanager

import pytest
import torch

from harness.protocol import cuda_driver, gate_kernel
from harness.protocol.arena import FLUSHED_BYTE, FLAGS_BYTES, GO_BYTE, KEY_BYTE, SECRET_BYTES, TURN_BYTE, Arena
from harness.protocol.gate_kernel import Waiter
from harness.protocol.masking import SOURCE, LateInputWriter, Mask
from harness.protocol.nvrtc import compile_cubin

pytestmark = pytest.mark.gpu

BYTES = 2 * 1024 * 1024 + 512
KEY, OTHER_KEY = bytes(range(16)), bytes(range(1, 17))


@pytest.fixture(scope="module")
def masked():
    """`masked(tensor, key)` returns the bytes under the mask of the key."""
    device = torch.device("cuda:0")
    torch.zeros(1, device=device)
    place = torch.zeros(16, dtype=torch.uint8, device=device)
    mask = Mask(compile_cubin(SOURCE, *torch.cuda.get_device_capability(device)), place.data_ptr(), 64)

    def apply(source: torch.Tensor, key: bytes) -> torch.Tensor:
        place.copy_(torch.frombuffer(bytearray(key), dtype=torch.uint8))
        target = torch.zeros_like(source)
        torch.cuda.synchronize()
        mask.apply(0, source.data_ptr(), target.data_ptr(), source.numel())
        torch.cuda.synchronize()
        return target

    return apply


@pytest.fixture(scope="module")
def plain():
    return torch.randint(0, 256, (BYTES,), dtype=torch.uint8, device="cuda:0")


def test_the_mask_taken_twice_is_no_mask(masked, plain):
    assert torch.equal(masked(masked(plain, KEY), KEY), plain)


def test_another_key_does_not_open_it(masked, plain):
    opened = masked(masked(plain, KEY), OTHER_KEY)
    assert (opened == plain).float().mean() < 0.01


def test_masks_of_keys_that_differ_in_one_bit_have_nothing_in_common(masked):
    zeros = torch.zeros(BYTES, dtype=torch.uint8, device="cuda:0")
    near = bytes([KEY[0] ^ 1]) + KEY[1:]
    assert (masked(zeros, KEY) == masked(zeros, near)).float().mean() < 0.01


def test_masked_zeros_look_like_noise_and_never_repeat(masked):
    words = masked(torch.zeros(BYTES, dtype=torch.uint8, device="cuda:0"), KEY).view(torch.int64)
    assert words.unique().numel() == words.numel()
    assert abs(words.view(torch.uint8).float().mean().item() - 127.5) < 1


def test_the_mask_is_philox_as_published(masked):
    # Known answer of Random123 for philox4x32-10: counter and key all zero.
    zeros = torch.zeros(16, dtype=torch.uint8, device="cuda:0")
    words = masked(zeros, bytes(16)).view(torch.int32).tolist()
    assert [word & 0xFFFFFFFF for word in words] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@contextmanager
def completed(records, slot, size_bytes, pieces):
    """While entered a stream waits for the window of launch 7; the slot is complete afterwards."""
    flags, beside = Arena.create().flags(), torch.cuda.Stream()
    words = cuda_driver.map_host(flags.address, FLAGS_BYTES)
    cubin = compile_cubin(SOURCE, *torch.cuda.get_device_capability())
    slot.any().item()  # a kernel that is loaded while another waits would wait for that one
    torch.cuda.synchronize()
    try:
        LateInputWriter(cubin, words, records.data_ptr()).run(beside.cuda_stream, 7, slot.data_ptr(), size_bytes)
        deadline = time.monotonic() + 5
        while flags.flushed != 7 and time.monotonic() < deadline:
            pass
        with torch.cuda.stream(torch.cuda.Stream()):  # the default stream would wait for the one that waits
            yield flags
    finally:
        flags.open_window(7, KEY, pieces)
        torch.cuda.synchronize()
        cuda_driver.unmap_host(flags.address)


@pytest.mark.parametrize("pieces", [0, 1, 5000])
def test_pieces_are_brought_under_their_key_where_they_belong_and_nowhere_else(masked, pieces):
    slot = torch.zeros(BYTES, dtype=torch.uint8, device="cuda:0")
    expected = slot.clone()
    places = torch.randperm(BYTES // 16, device="cuda:0")[:pieces]
    values = torch.randint(-(2**62), 2**62, (pieces, 2), device="cuda:0")
    expected.view(torch.int64).view(-1, 2)[places] = values
    records = torch.cat([places.unsqueeze(1), torch.zeros_like(places).unsqueeze(1), values], dim=1)
    source = torch.zeros(BYTES, dtype=torch.uint8, device="cuda:0")  # behind the last record lies what is none
    source[: 32 * pieces] = records.view(torch.uint8).flatten()
    shared = masked(source, KEY)
    with completed(shared, slot, BYTES, pieces) as flags:
        assert flags.flushed == 7, "said before it waits"
        assert not slot.any()
    assert torch.equal(slot, expected)


def test_a_place_behind_the_slot_is_left_alone(masked):
    slot = torch.zeros(4096, dtype=torch.uint8, device="cuda:0")
    record = torch.tensor([[128, 0, -1, -1]], device="cuda:0").view(torch.uint8).flatten()  # of 256 pieces there
    shared = masked(record, KEY)
    with completed(shared, slot, 2048, 1):
        pass
    assert not slot.any()


def test_a_handle_that_nobody_made_is_refused_in_words():
    with pytest.raises(cuda_driver.DriverError, match="cuIpcOpenMemHandle"):
        cuda_driver.open_ipc(bytes(cuda_driver.IPC_HANDLE_BYTES))


def test_words_of_the_arena_order_a_stream():
    flags = Arena.create().flags()
    words = cuda_driver.map_host(flags.address, FLAGS_BYTES)
    waiter = Waiter(compile_cubin(gate_kernel.SOURCE, *torch.cuda.get_device_capability()), words)
    taken = torch.zeros(SECRET_BYTES, dtype=torch.uint8, device="cuda")
    done = torch.cuda.Event()
    try:
        waiter.wait_and_take(0, GO_BYTE, 5, KEY_BYTE, SECRET_BYTES, taken.data_ptr(), FLUSHED_BYTE)
        cuda_driver.stream_write(0, words + TURN_BYTE, 9)
        done.record(torch.cuda.default_stream())
        deadline = time.monotonic() + 5
        while flags.flushed != 5 and time.monotonic() < deadline:
            pass
        assert flags.flushed == 5, "said before it waits"
        assert not done.query()
        assert flags.turn == 0
        flags.release(5, KEY, word=77)
        done.synchronize()
        assert flags.turn == 9
        assert bytes(taken.tolist()) == KEY + (77).to_bytes(8, "little")
    finally:
        flags.release(5, KEY)
        torch.cuda.synchronize()
        cuda_driver.unmap_host(flags.address)


def test_a_stream_waits_for_a_word_that_may_be_passed_over():
    flags = Arena.create().flags()
    words = cuda_driver.map_host(flags.address, FLAGS_BYTES)
    held = torch.cuda.Event()
    try:
        flags.let_go(4)
        cuda_driver.stream_wait(0, words + GO_BYTE, 5)
        cuda_driver.stream_write(0, words + TURN_BYTE, 9)
        held.record(torch.cuda.default_stream())
        assert not held.query()
        flags.let_go(6)
        held.synchronize()
        assert flags.turn == 9
    finally:
        flags.let_go(6)
        torch.cuda.synchronize()
        cuda_driver.unmap_host(flags.address)
