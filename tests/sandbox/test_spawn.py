"""Children that misbehave, run for real behind the sandbox of this machine and behind the weakest one: how they end."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from harness.reference.host_memory import at_most
from harness.sandbox import processes
from harness.sandbox.environment import scrubbed
from harness.sandbox.limits import ResourceLimits
from harness.sandbox.sandbox_choice import NO_SANDBOX, strongest_sandbox
from harness.sandbox.spawn import HEAD_BYTES, TAIL_BYTES, spawn

pytestmark = pytest.mark.processes

LIMITS = ResourceLimits(file_bytes=1 << 30)
HARNESS = Path(__file__).resolve().parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")


def is_still_touched(path: Path, within_s: float = 0.2) -> bool:
    """Whether it changes; a process that is expected to touch it has longer, since a busy machine may keep it waiting."""
    before, until_s = path.read_text(), time.monotonic() + within_s
    while time.monotonic() < until_s:
        time.sleep(0.01)
        if path.read_text() != before:
            return True
    return False


def test_a_child_that_exits_with_status_zero_says_so(start, sandbox):
    child = start("exits_zero", sandbox=sandbox)
    assert child.wait(10) == 0
    assert child.death() == "exited with status 0"


def test_an_exit_status_is_passed_on(start, sandbox):
    child = start("exits_seven", sandbox=sandbox)
    assert child.wait(10) == 7
    assert child.death() == "exited with status 7"


@pytest.mark.parametrize(("deed", "name", "number"), [("segfaults", "SIGSEGV", 11), ("aborts", "SIGABRT", 6)])
def test_a_fatal_signal_is_named(start, sandbox, deed, name, number):
    child = start(deed, sandbox=sandbox)
    assert child.wait(10) == -number
    assert child.death() == f"killed by {name}"


def test_a_module_that_does_not_exist_is_seen_in_the_output(start, folders):
    child = spawn(
        "no_such_module", environment=scrubbed(os.environ), private=folders / "private",
        repository=folders / "repository", limits=LIMITS,
    )
    assert child.wait(10) == 1
    child.kill()
    assert "No module named no_such_module" in child.output()


def test_a_flood_of_a_gigabyte_neither_blocks_nor_fills_the_memory(start, sandbox):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = start("flood", sandbox=sandbox)
    assert child.wait(60) == 0
    child.kill()
    text = child.output()
    assert text.startswith("first words\n") and text.endswith("\nlast words\n")
    assert "bytes left out" in text
    assert len(text) < HEAD_BYTES + TAIL_BYTES + 100
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


@pytest.mark.parametrize("error", [RuntimeError("no room"), KeyboardInterrupt()])
def test_what_is_done_meanwhile_may_fail_and_the_child_is_gone_all_the_same(start, sandbox, error):
    child, asked = start("ignores_sigterm", sandbox=sandbox), []

    def meanwhile():
        asked.append(child)
        raise error

    with pytest.raises(type(error)):
        child.kill(meanwhile)
    assert asked == [child] and not Path(f"/proc/{child.pid}").exists()
    child.kill(meanwhile)
    assert len(asked) == 1


def test_a_child_that_ignores_sigterm_is_killed(start, sandbox):
    child = start("ignores_sigterm", sandbox=sandbox)
    assert child.channel.receive(10) == {"ready": True}
    assert child.poll() is None and child.death() == "still running"
    began = time.monotonic()
    child.kill()
    assert time.monotonic() - began < 5
    assert child.poll() is not None
    assert child.death() == "killed by SIGKILL"


def test_kill_may_be_called_again(start, sandbox):
    child = start("ignores_sigterm", sandbox=sandbox)
    child.kill()
    child.kill()
    assert not Path(f"/proc/{child.pid}").exists()


def test_a_kill_that_is_interrupted_leaves_no_child_behind(start, sandbox, monkeypatch):
    child, waits = start("ignores_sigterm", sandbox=sandbox), []
    usual = child._ends_within

    def interrupted(timeout_s):
        waits.append(timeout_s)
        if len(waits) == 1:
            raise KeyboardInterrupt
        return usual(timeout_s)

    monkeypatch.setattr(child, "_ends_within", interrupted)
    with pytest.raises(KeyboardInterrupt):
        child.kill()
    assert len(waits) == 2 and not Path(f"/proc/{child.pid}").exists()
    with pytest.raises(OSError):
        child.channel.send({}, 1.0)
    child.kill()


@linux
def test_a_daemon_of_a_living_child_is_gone_after_kill(start, folders, sandbox):
    touched = folders / "private" / "touched"
    child = start("daemon_and_stay", touched, sandbox=sandbox)
    child.channel.receive(10)
    assert is_still_touched(touched, within_s=10)
    child.kill()
    assert not is_still_touched(touched)
    assert processes.descendants(child.pid) == []


@linux
def test_a_daemon_of_a_child_that_has_left_is_gone_with_it(start, folders, sandbox):
    touched = folders / "private" / "touched"
    child = start("daemon_and_leave", touched, sandbox=sandbox)
    assert child.wait(10) == 0
    assert not is_still_touched(touched)


@linux
def test_nothing_survives_a_harness_that_is_killed(folders, way):
    touched = folders / "private" / "touched"
    program = textwrap.dedent(f"""
        import os, sys, time
        from pathlib import Path
        from harness.sandbox.environment import scrubbed
        from harness.sandbox.limits import ResourceLimits
        from harness.sandbox.spawn import spawn
        from harness.sandbox.sandbox_choice import NO_SANDBOX, strongest_sandbox
        child = spawn("untrusted", arguments=["touches_forever", {str(touched)!r}],
            environment=scrubbed(os.environ), private=Path({str(folders / "private")!r}),
            repository=Path({str(folders / "repository")!r}),
            limits=ResourceLimits(file_bytes=1 << 30), sandbox={"NO_SANDBOX" if way.sandbox == NO_SANDBOX else "strongest_sandbox()"},
            preloaded={way.preloaded!r})
        print("started", flush=True)
        time.sleep(60)
    """)
    harness = subprocess.Popen([sys.executable, "-c", program], cwd=HARNESS, stdout=subprocess.PIPE)
    assert harness.stdout.readline() == b"started\n"
    deadline = time.monotonic() + 10
    while not touched.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    harness.kill()
    harness.wait()
    harness.stdout.close()
    time.sleep(0.5)
    assert not is_still_touched(touched)


def test_a_file_longer_than_the_limit_is_refused(start, folders, sandbox):
    path = folders / "private" / "long"
    child = start("writes_long_file", path, sandbox=sandbox, limits=ResourceLimits(file_bytes=1 << 20))
    assert child.channel.receive(10) == {"error": errno.EFBIG}
    assert path.stat().st_size <= 1 << 20


def test_a_child_without_a_gpu_gets_no_more_memory_than_its_address_space(start, folders, sandbox):
    child = start("takes_memory", 256 << 20, sandbox=sandbox, limits=ResourceLimits(file_bytes=1 << 20, address_bytes=1 << 30))
    assert child.channel.receive(10) == {"taken": 256 << 20}
    child = start("takes_memory", 2 << 30, sandbox=sandbox, limits=ResourceLimits(file_bytes=1 << 20, address_bytes=1 << 30))
    assert child.channel.receive(10) == {"error": "MemoryError"}


def test_a_child_has_no_limit_that_the_harness_has_for_a_moment(start, folders, sandbox):
    """While a reference is called for the first time on a CPU, a worker may be started beside it."""
    with at_most(0):
        child = start("takes_memory", 3 << 30, sandbox=sandbox, limits=ResourceLimits(file_bytes=1 << 20))
        assert child.channel.receive(30) == {"taken": 3 << 30}


def test_a_child_holds_the_files_it_is_to_inherit(folders, way):
    read_fd, write_fd = os.pipe()
    program = "import os, sys; os.write(int(sys.argv[2]), b'here')\n"
    (folders / "repository" / "inheritor.py").write_text(program)
    child = spawn(
        "inheritor", arguments=[str(write_fd)], environment=scrubbed(os.environ), private=folders / "private",
        repository=folders / "repository", inherit=[write_fd], limits=LIMITS, sandbox=way.sandbox, preloaded=way.preloaded,
    )
    os.close(write_fd)
    assert os.read(read_fd, 100) == b"here"
    assert child.wait(10) == 0
    child.kill()
    assert os.read(read_fd, 100) == b""
    os.close(read_fd)


def test_no_file_descriptor_is_left_behind(start, sandbox):
    start("exits_zero", sandbox=sandbox).kill()
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    for _ in range(3):
        start("exits_zero", sandbox=sandbox).kill()
    after = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    assert after == before


@linux
def test_a_sandbox_that_cannot_be_built_starts_nothing(start, folders, monkeypatch):
    if not strongest_sandbox().mounts_from_inside:
        pytest.skip("this machine's sandbox makes no mounts from inside")
    child = start("daemon_and_leave", folders / "private" / "touched", writable=[folders / "missing"])
    child.wait(10)
    assert "the sandbox could not be built" in child.death()
    assert not (folders / "private" / "touched").exists()
