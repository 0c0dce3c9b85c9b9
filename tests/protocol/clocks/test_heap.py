"""The host's heap: what was freed is not faulted in again, and it has its pages before the first call."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
from pathlib import Path

import pytest

from harness.protocol.clocks import heap

REPOSITORY = Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.processes, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")]


def printed_by(program: str) -> list[int]:
    """The numbers that `program` prints, which has a `heap` of its process's own; skips where that cannot be steady."""
    begin = "from harness.protocol.clocks import heap\nown = heap.SteadyHeap()\nprint(int(own.is_steady))\n"
    command = [sys.executable, "-c", begin + program]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    steady, *numbers = map(int, done.stdout.split())
    if not steady:
        pytest.skip("the C library has no mallopt")
    return numbers


FAULTS = (
    "import resource, torch\n"
    "def faults_of(call, times):\n"
    "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
    "    for _ in range(times):\n        call()\n"
    "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
)
RESIDENT = "def resident():\n    return int(open('/proc/self/statm').read().split()[1])\n"


def test_freed_memory_is_not_faulted_in_again():
    ones = "call = lambda: torch.ones(4 << 20)\nfaults_of(call, 20)\nprint(faults_of(call, 20))\n"
    (faults,) = printed_by(FAULTS + ones)
    assert faults < 2000  # 20 blocks of 16 MiB are 82 000 pages


def test_calls_after_the_first_take_no_faults():
    program = (
        "for rows in (256, 512, 1024):\n"
        "    own.grow_for(3 * 4 * rows**2)\n"
        "    A, B = torch.rand(2, rows, rows)\n"
        "    call = lambda: torch.tril(A @ B)\n"
        "    call()\n"
        "    print(faults_of(call, 10))\n"
    )
    faults = printed_by(FAULTS + program)
    assert len(faults) == 3 and max(faults) < 100


@pytest.mark.parametrize("advice", [heap._MADV_POPULATE_WRITE, 12345], ids=["at once", "by an older Linux"])
@pytest.mark.parametrize(("call_bytes", "blocks"), [
    (1, 1), (heap._BLOCK_BYTES // heap._TIMES_A_CALL + 1, 2), (1 << 40, heap._MOST_BLOCKS),
])
def test_a_heap_that_grows_has_its_pages(advice, call_bytes, blocks):
    program = f"heap._MADV_POPULATE_WRITE = {advice}\nbefore = resident()\nown.grow_for({call_bytes})\n"
    (pages,) = printed_by(f"{RESIDENT}{program}print(resident() - before)\n")
    assert abs(pages * mmap.PAGESIZE - blocks * heap._BLOCK_BYTES) < 0.4 * heap._BLOCK_BYTES


def test_it_grows_for_larger_calls_alone():
    program = (
        "def fails(size_bytes):\n    raise MemoryError\n"
        "own.grow_for(1 << 21)\n"
        "malloc, own._malloc = own._malloc, fails\n"
        "own.grow_for(1 << 21)\n"
        "own.grow_for(1)\n"
        "own._malloc = malloc\n"
        "before = resident()\n"
        "own.grow_for(1 << 23)\n"
        "print(resident() - before)\n"
    )
    (pages,) = printed_by(RESIDENT + program)
    assert pages * mmap.PAGESIZE > 80 << 20  # from 32 MiB to 128


def test_a_c_library_without_mallopt_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    own = heap.SteadyHeap()
    own.grow_for(1 << 30)
    assert not own.is_steady
