"""What no look at a worker's cores can have met: told by the system's own word on time and memory."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import time
from collections import Counter

import pytest

from harness.device import unmet_code
from harness.device.core_watch import CoreWatch
from harness.device.unmet_code import CoreBalance, MappedCode

pytestmark = pytest.mark.processes
_SPINS = (
    "import sys, time, zlib\nblock = bytes(1 << 20)\nsys.stdin.readline()\nend = time.process_time() + 0.8\n"
    "while time.process_time() < end: zlib.crc32(block)\nprint(flush=True)\nsys.stdin.readline()\n"
)
# Copies a page of a library over another of its own memory, by a map of the file that is private and may be executed.
_MOVES = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
size, how = mmap.PAGESIZE, sys.argv[2]
own = libc.mmap(None, size, 5, 2, os.open(sys.argv[1], os.O_RDONLY), 0)
ctypes.string_at(own, 1)
sys.stdin.readline()
if how == "written":
    libc.mprotect(own, size, 3)
    ctypes.memset(own, 0x90, size)
    libc.mprotect(own, size, 5)
elif how == "system's":
    begin, end = (int(each, 16) for each in next(line for line in open("/proc/self/maps") if "[vdso]" in line).split()[0].split("-"))
    libc.mprotect(begin, end - begin, 7)
    ctypes.memset(end - 8, 0x90, 8)
elif how == "moved":
    other = libc.mmap(None, size, 5, 2, os.open(sys.argv[3], os.O_RDONLY), 0)
    libc.mremap(other, size, size, 3, own)
elif how == "nobody's":
    other = libc.mmap(None, size, 7, 0x22, -1, 0)
    libc.mremap(other, size, size, 3, own)
elif how == "compiled":
    libc.mmap(own, size, 3, 0x32, -1, 0)
    libc.mprotect(own, size, 5)
print(flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def begun():
    processes = []

    def begin(*command):
        processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        time.sleep(0.5)
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def go_on(process):
    process.stdin.write(b"\n")
    process.stdin.flush()
    process.stdout.readline()


@pytest.mark.parametrize(("looks", "is_unmet"), [(0, True), (30, True), (60, False), (4000, False)])
def test_a_process_must_be_met_as_often_as_it_had_a_core(begun, looks, is_unmet):
    process = begun(sys.executable, "-c", _SPINS)
    balance = CoreBalance([process.pid])
    go_on(process)
    sentences = list(balance.unmet(Counter({process.pid: looks})))
    assert bool(sentences) == is_unmet
    assert not is_unmet or f"was met by {looks} looks" in sentences[0]


def test_a_process_that_has_ended_counts_by_who_waited_for_it(begun):
    waits = f"import subprocess, sys\nsys.stdin.readline()\nsubprocess.run([sys.executable, '-c', {_SPINS!r}], input=b'\\n\\n', stdout=-3)\nprint(flush=True)\nsys.stdin.readline()"
    process = begun(sys.executable, "-c", waits)
    balance = CoreBalance([process.pid])
    go_on(process)
    assert list(balance.unmet(Counter()))
    assert not list(balance.unmet(Counter({1 << 22: 100})))


def test_a_process_that_is_looked_at_is_met_as_often_as_it_takes(begun):
    process = begun(sys.executable, "-c", _SPINS)
    watch = CoreWatch([process.pid])
    if watch.fault is not None:
        pytest.skip(watch.fault)
    go_on(process)
    watch.check()
    watch.close()
    assert (watch.unmet, watch.lost) == ([], 0)


@pytest.mark.parametrize(("how", "words"), [
    ("left", ""), ("system's", "code of [vdso] is not what that file holds"), ("written", "code of own.so is not what that file holds"), ("compiled", ""),
    ("moved", "code of other.so lies where the system saw that of own.so come"),
    ("nobody's", "code of no file lies where the system saw that of own.so come"),
])
def test_code_must_lie_in_memory_as_it_came(begun, tmp_path, how, words):
    own, other = tmp_path / "own.so", tmp_path / "other.so"
    for path in (own, other):
        shutil.copy(os.path.realpath(sys.executable), path)
    process = begun(sys.executable, "-c", _MOVES, str(own), how, str(other))
    watch = CoreWatch([process.pid])
    if watch.fault is not None:
        pytest.skip(watch.fault)
    go_on(process)
    watch.read()
    code = MappedCode([process.pid])
    sentences = list(code.moved([process.pid], watch.mapped))
    watch.close()
    assert [words in each for each in sentences] == ([True] if words else [])
    assert own.stat().st_size > mmap.PAGESIZE


@pytest.mark.parametrize("how", ["left", "written"])
def test_so_must_code_of_the_languages_that_is_anybodys(begun, how):
    [library] = {os.path.realpath(line.split()[-1]) for line in open("/proc/self/maps") if "/libc.so" in line}
    process = begun(sys.executable, "-c", _MOVES, library, how)
    sentences = list(MappedCode([]).moved([process.pid], []))
    assert sentences == []
    go_on(process)
    sentences = list(MappedCode([]).moved([process.pid], []))
    assert [f"code of {os.path.basename(library)} is not what that file holds" in each for each in sentences] == (
        [True] if how == "written" else []
    )


@pytest.mark.parametrize(("bits", "is_own"), [((63, 61), False), ((63,), True), ((62,), True), ((61,), False), ((), False)])
def test_a_page_that_was_written_to_is_known_when_it_is_swapped_out_as_well(bits, is_own):
    assert unmet_code._is_its_own(sum(1 << bit for bit in bits)) == is_own


@pytest.mark.parametrize(("had_s", "count", "is_told"), [
    (0.09, 0, False), (0.15, 0, True), (0.15, 1, False), (0.29, 1, False), (0.4, 19, True), (0.4, 21, False),
])
def test_a_process_that_was_met_by_no_look_at_all_is_told_sooner(monkeypatch, had_s, count, is_told):
    times_s = iter([(0.0, 0.0), (had_s, 0.0)])
    monkeypatch.setattr(unmet_code, "_had_s", lambda pid: next(times_s))
    monkeypatch.setattr(unmet_code.processes, "descendants", lambda *pids: [])
    assert bool(list(CoreBalance([7]).unmet({7: count}))) == is_told
