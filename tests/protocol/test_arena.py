"""Shared host memory between two processes, one of which is not to be trusted with it."""

from __future__ import annotations

import fcntl
import mmap
import os
import subprocess
import sys

import pytest
import torch

from harness.protocol.arena import (
    FLUSHED_BYTE, FLAGS_BYTES, GO_BYTE, KEY_BYTE, KEY_BYTES, MAIL_BYTE, TURN_BYTE, WINDOW_BYTE, WORD_BYTE, Arena,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="sealed anonymous files are Linux's")


@pytest.fixture
def arena():
    arena = Arena.create()
    yield arena
    os.close(arena.descriptor)


def test_regions_follow_the_flags_page_by_page_and_never_overlap(arena):
    first, second, third = arena.grow(10), arena.grow(mmap.PAGESIZE), arena.grow(1)
    assert first == FLAGS_BYTES
    assert second == first + mmap.PAGESIZE
    assert third == second + mmap.PAGESIZE
    assert os.fstat(arena.descriptor).st_size == arena.end


def test_two_mappings_of_one_region_show_the_same_bytes(arena):
    offset = arena.grow(64)
    ours, theirs = arena.map(offset, 64), Arena(arena.descriptor).map(offset, 64)
    ours.copy_(torch.arange(64, dtype=torch.uint8))
    assert torch.equal(ours, theirs)


def test_a_mapping_stays_good_when_the_arena_grows(arena):
    first = arena.map(arena.grow(16), 16)
    first.fill_(7)
    for _ in range(10):
        arena.grow(1 << 20)
    assert first.tolist() == [7] * 16


@pytest.mark.processes
def test_nobody_can_cut_it_short_under_the_other_side(arena):
    offset = arena.grow(1 << 20)
    program = (
        "import fcntl, os, sys\n"
        "fd = int(sys.argv[1])\n"
        "for attempt in (lambda: os.ftruncate(fd, 0), lambda: os.truncate(f'/proc/self/fd/{fd}', 4096)):\n"
        "    try:\n        attempt()\n        print('cut')\n"
        "    except PermissionError:\n        print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(arena.descriptor)], pass_fds=[arena.descriptor], capture_output=True,
        text=True, timeout=30, check=True,
    )
    assert done.stdout.split() == ["refused", "refused"]
    assert int(arena.map(offset, 1 << 20).sum()) == 0


def test_the_seal_is_on_from_the_start(arena):
    f_get_seals, f_seal_shrink = 1034, 0x0002
    assert fcntl.fcntl(arena.descriptor, f_get_seals) & f_seal_shrink


def test_it_is_not_handed_to_every_child_process(arena):
    assert not os.get_inheritable(arena.descriptor)


def test_flags_are_one_set_of_words_seen_from_both_sides(arena):
    ours, theirs = arena.flags(), Arena(arena.descriptor).flags()
    ours.release(7, bytes(range(KEY_BYTES)))
    page = arena.map(0, FLAGS_BYTES)
    assert int.from_bytes(bytes(page[GO_BYTE : GO_BYTE + 4].tolist()), "little") == 7
    assert page[KEY_BYTE : KEY_BYTE + KEY_BYTES].tolist() == list(range(KEY_BYTES))
    page[TURN_BYTE] = 9
    assert theirs.turn == ours.turn == 9
    page[FLUSHED_BYTE] = 3
    assert theirs.flushed == ours.flushed == 3
    ours.reset()
    assert theirs.turn == theirs.flushed == 0


def test_a_key_and_a_word_are_in_place_with_the_release_and_the_window_stays_shut(arena):
    flags, page = arena.flags(), arena.map(0, FLAGS_BYTES)
    flags.release(5, bytes(KEY_BYTES), word=2**64 - 2)
    assert page[WORD_BYTE : WORD_BYTE + 8].tolist() == [254] + 7 * [255]
    assert flags.window == 0
    flags.open_window(5)
    assert flags.window == 5


def test_words_of_two_sides_do_not_share_a_cache_line():
    assert len({at // 64 for at in (TURN_BYTE, GO_BYTE, KEY_BYTE, MAIL_BYTE, WINDOW_BYTE, FLUSHED_BYTE)}) == 6
    assert WORD_BYTE >= KEY_BYTE + KEY_BYTES
    assert WORD_BYTE % 8 == 0
    assert KEY_BYTE + KEY_BYTES <= FLAGS_BYTES


def test_nobody_can_seal_it_further_for_those_that_come_later(arena):
    f_add_seals, against_growing, against_writing_later = 1033, 0x4, 0x10
    with pytest.raises(PermissionError):
        fcntl.fcntl(arena.descriptor, f_add_seals, against_growing | against_writing_later)
    arena.map(arena.grow(1 << 20), 1 << 20).fill_(1)


def test_it_grows_on_after_a_worker_has_let_it_grow_and_gives_back_what_was_written_there(arena):
    arena.map(arena.grow(1 << 16), 1 << 16).fill_(5)
    os.posix_fallocate(arena.descriptor, arena.end, 64 << 20)
    before_bytes = 512 * os.fstat(arena.descriptor).st_blocks
    offset = arena.grow(1 << 16)
    arena.map(offset, 1 << 16).fill_(7)
    arena.reclaim()
    assert before_bytes - 512 * os.fstat(arena.descriptor).st_blocks > 60 << 20
    assert arena.map(offset, 1 << 16).tolist() == [7] * (1 << 16)
