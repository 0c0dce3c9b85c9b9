"""Children that misbehave, run for real behind the wall of this machine and behind the weakest one."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import socket
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import pytest

from harness.sandbox import processes
from harness.sandbox.environment import scrubbed
from harness.sandbox.forking import server_for
from harness.sandbox.limits import Limits
from harness.sandbox.output import HEAD_BYTES, TAIL_BYTES
from harness.sandbox.spawn import spawn
from harness.sandbox.walls import NO_WALL, best_wall

PRELOADED = ("json",)
LIMITS = Limits(file_bytes=1 << 30)
HARNESS = Path(__file__).resolve().parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")


@pytest.fixture
def folders(tmp_path):
    """A repository with the misbehaving program in it, a private folder and one more to write to."""
    for name in ("repository", "private", "writable"):
        (tmp_path / name).mkdir()
    shutil.copy(Path(__file__).with_name("untrusted.py"), tmp_path / "repository")
    return tmp_path


@pytest.fixture(params=["best", "forked", "weakest"])
def wall(request, monkeypatch):
    """Each way to start a child; "forked" is the best wall around a fork of a process that has imported already."""
    if request.param == "forked":
        if server_for(best_wall(), scrubbed(os.environ), PRELOADED) is None:
            pytest.skip("this machine's wall is none that a fork can build")
        monkeypatch.setattr(sys.modules[__name__], "spawn", partial(spawn, preloaded=PRELOADED))
    return NO_WALL if request.param == "weakest" else best_wall()


@pytest.fixture
def start(folders):
    children = []

    def start(deed, *arguments, wall=None, limits=LIMITS, environment=None, **more):
        child = spawn(
            "untrusted", arguments=[deed, *map(str, arguments)],
            environment=scrubbed(environment or os.environ), private=folders / "private",
            repository=folders / "repository", limits=limits, wall=wall, **more,
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()


def is_still_touched(path: Path) -> bool:
    before = path.read_text()
    time.sleep(0.2)
    return path.read_text() != before


def test_a_child_that_exits_with_status_zero_says_so(start, wall):
    child = start("exits_zero", wall=wall)
    assert child.wait(10) == 0
    assert child.death() == "exited with status 0"


def test_an_exit_status_is_passed_on(start, wall):
    child = start("exits_seven", wall=wall)
    assert child.wait(10) == 7
    assert child.death() == "exited with status 7"


@pytest.mark.parametrize(("deed", "name", "number"), [("segfaults", "SIGSEGV", 11), ("aborts", "SIGABRT", 6)])
def test_a_fatal_signal_is_named(start, wall, deed, name, number):
    child = start(deed, wall=wall)
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


def test_a_flood_of_a_gigabyte_neither_blocks_nor_fills_the_memory(start, wall):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = start("flood", wall=wall)
    assert child.wait(60) == 0
    child.kill()
    text = child.output()
    assert text.startswith("first words\n") and text.endswith("\nlast words\n")
    assert "bytes left out" in text
    assert len(text) < HEAD_BYTES + TAIL_BYTES + 100
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_a_child_that_ignores_sigterm_is_killed(start, wall):
    child = start("ignores_sigterm", wall=wall)
    assert child.channel.receive(10) == {"ready": True}
    assert child.poll() is None and child.death() == "still running"
    began = time.monotonic()
    child.kill()
    assert time.monotonic() - began < 5
    assert child.poll() is not None
    assert child.death() == "killed by SIGKILL"


def test_kill_may_be_called_again(start, wall):
    child = start("ignores_sigterm", wall=wall)
    child.kill()
    child.kill()
    assert not Path(f"/proc/{child.pid}").exists()


@linux
def test_a_daemon_of_a_living_child_is_gone_after_kill(start, folders, wall):
    touched = folders / "private" / "touched"
    child = start("daemon_and_stay", touched, wall=wall)
    child.channel.receive(10)
    assert is_still_touched(touched)
    child.kill()
    assert not is_still_touched(touched)
    assert processes.descendants(child.pid) == []


@linux
def test_a_daemon_of_a_child_that_has_left_is_gone_with_it(start, folders, wall):
    touched = folders / "private" / "touched"
    child = start("daemon_and_leave", touched, wall=wall)
    assert child.wait(10) == 0
    assert not is_still_touched(touched)


@linux
def test_nothing_survives_a_harness_that_is_killed(folders, wall):
    touched = folders / "private" / "touched"
    program = textwrap.dedent(f"""
        import os, sys, time
        from pathlib import Path
        from harness.sandbox.environment import scrubbed
        from harness.sandbox.limits import Limits
        from harness.sandbox.spawn import spawn
        from harness.sandbox.walls import NO_WALL, best_wall
        child = spawn("untrusted", arguments=["touches_forever", {str(touched)!r}],
            environment=scrubbed(os.environ), private=Path({str(folders / "private")!r}),
            repository=Path({str(folders / "repository")!r}),
            limits=Limits(file_bytes=1 << 30), wall={"NO_WALL" if wall == NO_WALL else "best_wall()"},
            preloaded={getattr(spawn, "keywords", {}).get("preloaded", ())!r})
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


@pytest.fixture
def looked(folders, wall):
    """What a child behind `wall` saw when it looked around."""
    listener = socket.create_server(("127.0.0.1", 0))
    secret = {"HF_TOKEN": "secret", "LD_PRELOAD": "/nowhere.so", "PYTHONSTARTUP": "/nowhere.py"}
    child = spawn(
        "untrusted",
        arguments=[
            "looks_around", str(folders / "repository"), str(folders / "private"), str(folders / "writable"),
            str(folders / "repository" / "untrusted.py"), str(os.getpid()),
        ],
        environment=scrubbed({**os.environ, **secret}, {"TEST_PORT": str(listener.getsockname()[1])}),
        private=folders / "private", writable=[folders / "writable"], repository=folders / "repository",
        limits=LIMITS, wall=wall,
    )
    frame = child.channel.receive(20)
    child.kill()
    listener.close()
    return frame


def test_a_child_may_write_into_its_own_folders(looked):
    assert looked["private"] and looked["writable"]


def test_the_repository_and_the_machine_are_read_only_where_the_wall_says_so(looked, wall):
    places = ("new_in_repository", "changed_in_repository", "beside_repository", "interpreter")
    if wall.read_only_repository:
        assert {place: looked[place] for place in places} == dict.fromkeys(places, False)
        assert not looked["remounted"]
        assert not looked["disks"]
    else:
        assert looked["new_in_repository"]


def test_a_child_sees_no_network_where_the_wall_says_so(looked, wall):
    assert looked["network"] == ("net" not in wall.namespaces)


def test_a_child_sees_and_signals_no_process_outside_where_the_wall_says_so(looked, wall):
    if "pid" in wall.namespaces:
        assert len(looked["pids"]) <= 4
        assert not looked["signals_outside"]
        # The first process of bubblewrap is its own and has no more power than the child.
        assert not looked["parent_files"] or wall.name == "bubblewrap"
    else:
        assert os.getpid() in looked["pids"]


def test_the_environment_is_scrubbed_and_points_into_the_private_folder(looked, folders):
    environment = looked["environment"]
    assert not {"HF_TOKEN", "LD_PRELOAD", "PYTHONSTARTUP"} & set(environment)
    private = str((folders / "private").resolve())
    for name in ("HOME", "TMPDIR", "TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR"):
        assert environment[name].startswith(private)
    assert environment["TORCHINDUCTOR_COMPILE_THREADS"] == "1"


def test_a_child_starts_in_the_repository_with_nothing_to_read(looked, folders):
    assert looked["folder"] == str((folders / "repository").resolve())
    assert looked["stdin"] == ""


def test_a_file_longer_than_the_limit_is_refused(start, folders, wall):
    path = folders / "private" / "long"
    child = start("writes_long_file", path, wall=wall, limits=Limits(file_bytes=1 << 20))
    assert child.channel.receive(10) == {"error": errno.EFBIG}
    assert path.stat().st_size <= 1 << 20


def test_a_child_without_a_gpu_gets_no_more_memory_than_its_address_space(start, folders, wall):
    child = start("takes_memory", 256 << 20, wall=wall, limits=Limits(file_bytes=1 << 20, address_bytes=1 << 30))
    assert child.channel.receive(10) == {"taken": 256 << 20}
    child = start("takes_memory", 2 << 30, wall=wall, limits=Limits(file_bytes=1 << 20, address_bytes=1 << 30))
    assert child.channel.receive(10) == {"error": "MemoryError"}


def test_a_child_holds_the_files_it_is_to_inherit(start, folders, wall):
    read_fd, write_fd = os.pipe()
    program = "import os, sys; os.write(int(sys.argv[2]), b'here')\n"
    (folders / "repository" / "inheritor.py").write_text(program)
    child = spawn(
        "inheritor", arguments=[str(write_fd)], environment=scrubbed(os.environ), private=folders / "private",
        repository=folders / "repository", inherit=[write_fd], limits=LIMITS, wall=wall,
    )
    os.close(write_fd)
    assert os.read(read_fd, 100) == b"here"
    assert child.wait(10) == 0
    child.kill()
    assert os.read(read_fd, 100) == b""
    os.close(read_fd)


def test_no_file_descriptor_is_left_behind(start, wall):
    start("exits_zero", wall=wall).kill()
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    for _ in range(3):
        start("exits_zero", wall=wall).kill()
    after = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    assert after == before


@linux
def test_a_wall_that_cannot_be_built_starts_nothing(start, folders, monkeypatch):
    if not best_wall().mounts_from_inside:
        pytest.skip("this machine's wall makes no mounts from inside")
    child = start("daemon_and_leave", folders / "private" / "touched", writable=[folders / "missing"])
    child.wait(10)
    assert "the wall could not be built" in child.death()
    assert not (folders / "private" / "touched").exists()


@linux
def test_a_child_makes_no_user_namespaces_of_which_a_machine_has_only_so_many(start, wall):
    if "user" not in wall.namespaces or wall.name == "bubblewrap":
        pytest.skip("what is not of our making has the machine's own limit")
    assert start("makes_namespaces", 3, wall=wall).channel.receive(30) == {"held": 0}
