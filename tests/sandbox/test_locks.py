"""Locks between runs, and that no candidate can hold one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.build.cache import Cache
from harness.build.cache_space import Lease, holdings, remove
from harness.device.lock import device_lock
from harness.results.writer import RunFiles
from harness.sandbox.locks import Lock

REPOSITORY = Path(__file__).resolve().parents[2]
HOLDS_IT = (
    "import sys, time; from pathlib import Path; from harness.sandbox.locks import Lock\n"
    "lock = Lock(Path(sys.argv[1])); print(lock.take(), flush=True); time.sleep(60)"
)


@pytest.fixture
def other_process(tmp_path):
    """Another process that has the lock of `tmp_path / "x.lock"`."""
    command = [sys.executable, "-c", HOLDS_IT, str(tmp_path / "x.lock")]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "True\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.processes
def test_one_at_a_time_has_a_lock_and_its_process_is_named(tmp_path, other_process):
    lock = Lock(tmp_path / "x.lock")
    assert lock.holder() == other_process.pid
    began = time.monotonic()
    assert not lock.take() and not lock.take(0.2) and not lock.is_taken
    assert 0.2 <= time.monotonic() - began < 5


@pytest.mark.processes
def test_a_lock_is_free_when_its_process_has_died(tmp_path, other_process):
    other_process.kill()
    other_process.wait()
    with Lock(tmp_path / "x.lock") as lock:
        assert lock.is_taken and lock.holder() == os.getpid()
    assert not lock.is_taken and lock.holder() is None
    assert lock.take() and lock.take()
    lock.release()
    lock.release()


def test_the_file_of_a_lock_may_be_written_to_and_not_read_whatever_an_earlier_version_left(tmp_path):
    (tmp_path / "old.lock").touch(mode=0o644)
    for name, for_all, mode in (("new", False, 0o200), ("old", False, 0o200), ("shared", True, 0o222)):
        with Lock(tmp_path / f"{name}.lock", for_all=for_all):
            assert stat.S_IMODE((tmp_path / f"{name}.lock").stat().st_mode) == mode


def test_a_pipe_or_a_link_in_a_locks_place_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.lock")
    (tmp_path / "link.lock").symlink_to(tmp_path / "elsewhere")
    for name in ("pipe", "link"):
        with pytest.raises(OSError):
            Lock(tmp_path / f"{name}.lock").take()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="leases and /proc are Linux's")
@pytest.mark.processes
def test_a_child_can_lock_nothing_that_the_harness_locks_or_writes_to(start, sandbox, tmp_path, monkeypatch):
    monkeypatch.setattr("harness.device.lock.OF_THE_MACHINE", tmp_path / "machine")
    (tmp_path / "machine").mkdir()
    cache, lease = Cache(tmp_path / "cache"), Lease(tmp_path / "cache")
    files = RunFiles.create(tmp_path / "results", "tril", "cpu", "2026-05-01T12:30:05Z")
    with cache.lock("key", 1), device_lock("GPU-1"):
        pass
    devices = tmp_path / "machine" / "kernel-referee-locks"
    locked = [*(cache.root / "locks").iterdir(), *devices.iterdir(), lease._path]
    assert len(locked) == 3
    readable = tmp_path / "readable"
    readable.touch()
    child = start("locks_files", *locked, files.jsonl_path, readable, sandbox=sandbox)
    found = child.channel.receive(30)
    if not sandbox.read_only_repository:
        # It can do what its user can; the lease's lock is held.
        assert {str(path) for path in locked if path != lease._path} <= set(found["locked"])
        return
    assert set(found["locked"]).isdisjoint(map(str, locked))
    assert found["leased"] == [str(readable)]
    began = time.monotonic()
    with cache.lock("key", 20), device_lock("GPU-1"):
        Lease(tmp_path / "cache").end()
    files._add_lines()
    assert time.monotonic() - began < 5
    files.finish([])


def test_the_lease_of_a_run_that_has_died_is_taken_for_no_living_ones(tmp_path):
    lease = Lease(tmp_path)
    os.close(lease._lock._descriptor)
    lease._lock._descriptor = None
    assert remove(tmp_path, holdings(tmp_path)) == []
    assert not lease._path.exists()
