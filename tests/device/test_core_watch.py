"""Looks at what another process's cores run, at threads that it begins later, and at its children."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from harness.attribution.code_regions import Window, code_seen
from harness.device.core_watch import CoreWatch

pytestmark = pytest.mark.processes
EVER = [Window(0, 1 << 62, 1)]
_SPINS = "end = time.process_time() + 0.6\nwhile time.process_time() < end: zlib.crc32(block)\n"
_WORKS = {
    "itself": _SPINS,
    "a thread": "def spin():\n    " + _SPINS.replace("\n", "\n    ") + "\nthread = threading.Thread(target=spin); thread.start(); thread.join()",
    "a child": "if os.fork() == 0:\n    " + _SPINS.replace("\n", "\n    ") + "\n    os._exit(0)\nos.wait()",
}


@pytest.fixture
def watched():
    begun = []

    def watch(work):
        words = f"import os, sys, threading, time, zlib\nblock = bytes(1 << 20)\nsys.stdin.readline()\n{work}\n"
        process = subprocess.Popen([sys.executable, "-c", words], stdin=subprocess.PIPE)
        time.sleep(0.3)
        watch = CoreWatch([process.pid])
        begun.extend([process, watch])
        if watch.fault is not None:
            pytest.skip(watch.fault)
        return process, watch

    yield watch
    for process, watch in zip(begun[::2], begun[1::2]):
        watch.close()
        process.kill()
        process.communicate()


@pytest.mark.parametrize("who", _WORKS)
def test_whoever_works_is_looked_at(watched, who):
    process, watch = watched(_WORKS[who])
    with watch.often():
        process.communicate(b"\n")
    watch.read()
    assert watch.fault is None
    seen = code_seen(watch.looks, watch.mapped, EVER, [])
    assert seen.count > 100
    assert sum(count for file, count in seen.files.items() if "zlib" in file or "libz" in file) > 0.5 * seen.count


def test_it_looks_rarely_otherwise_and_by_the_monotonic_clock(watched):
    process, watch = watched(_SPINS)
    began_ns = time.monotonic_ns()
    process.communicate(b"\n")
    ended_ns = time.monotonic_ns()
    watch.read()
    assert 10 < len(watch.looks) < 200
    assert all(began_ns <= look.time_ns <= ended_ns for look in watch.looks)


def test_a_process_that_is_gone_is_a_fault_in_words():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    watch = CoreWatch([process.pid])
    assert "no process to look at" in watch.fault
    with watch.often():
        watch.read()
    assert watch.looks == []
    watch.close()
