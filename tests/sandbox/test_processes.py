"""What processes have had of a core."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.sandbox import processes

needs_schedstat = pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="this kernel does not say what a process had of a core"
)

@needs_schedstat
@pytest.mark.processes
def test_who_works_has_more_of_a_core_than_before_and_who_sleeps_has_not():
    busy = subprocess.Popen([sys.executable, "-I", "-S", "-c", "print('up', flush=True)\nwhile True: pass"],
                            stdout=subprocess.PIPE, text=True)
    idle = subprocess.Popen([sys.executable, "-I", "-S", "-c", "print('up', flush=True)\ninput()"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert busy.stdout.readline() == idle.stdout.readline() == "up\n"
        time.sleep(0.1)
        before = processes.core_time_ns([busy.pid]), processes.core_time_ns([idle.pid])
        deadline = time.monotonic() + 30
        while processes.core_time_ns([busy.pid]) < before[0] + 50e6:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert processes.core_time_ns([idle.pid]) - before[1] < 50e6
    finally:
        for each in (busy, idle):
            each.kill()
            each.wait()


def test_what_is_gone_has_had_nothing():
    assert processes.core_time_ns([2**22 + 1]) == 0
    assert processes.core_time_ns([]) == 0


def test_who_has_a_file_open_is_known_by_how_its_path_begins(tmp_path):
    path = tmp_path / "device0"
    path.write_text("")
    with path.open():
        assert processes.holds_open(os.getpid(), str(tmp_path / "device"))
    assert not processes.holds_open(os.getpid(), str(tmp_path / "device"))
    assert not processes.holds_open(2**22 + 1, "/")


@pytest.mark.processes
def test_what_was_spent_counts_those_below_and_the_ended_that_were_waited_for():
    burn = "import time\nwhile time.process_time() < 0.3: pass\n"
    program = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-I', '-S', '-c', {burn!r}])\n"
        f"below = subprocess.Popen([sys.executable, '-I', '-S', '-c', {burn + 'print(1, flush=True); input()'!r}], stdout=-1, stdin=-1)\n"
        "below.stdout.readline()\nprint('burnt', flush=True)\ninput()\nbelow.communicate(b'\\n')\n"
    )
    family = subprocess.Popen([sys.executable, "-I", "-S", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert family.stdout.readline() == "burnt\n"
        assert 0.55 <= processes.spent_s(family.pid) < 2
    finally:
        family.communicate("\n")
    assert processes.spent_s(family.pid) == 0
