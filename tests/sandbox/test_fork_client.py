"""Children forked from a process that has imported already: behind the same sandbox, with nothing of the server's left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.sandbox import fork_client
from harness.sandbox.environment import scrubbed
from harness.sandbox.limits import ResourceLimits
from harness.sandbox.prestart import PRELOADED
from harness.sandbox.sandbox_choice import NO_SANDBOX, Sandbox, strongest_sandbox
from harness.sandbox.spawn import spawn

pytestmark = pytest.mark.processes

MODULES = ("decimal", "tempfile")
LIMITS = ResourceLimits(file_bytes=1 << 30)
HARNESS = Path(__file__).resolve().parents[2]


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "repository").mkdir()
    shutil.copy(Path(__file__).with_name("untrusted.py"), tmp_path / "repository")
    return tmp_path / "repository"


@pytest.fixture
def server():
    found = fork_client.server_for(strongest_sandbox(), scrubbed(os.environ), MODULES)
    if found is None:
        pytest.skip("this machine's sandbox is none that a fork can build")
    return found


@pytest.fixture
def start(repository, tmp_path):
    children = []

    def start(deed, *arguments, preloaded=MODULES, **more):
        child = spawn(
            "untrusted", arguments=[deed, *map(str, arguments)], environment=scrubbed(os.environ),
            private=tmp_path / "private", repository=repository, limits=LIMITS, preloaded=preloaded, **more,
        )
        children.append(child)
        return child

    (tmp_path / "private").mkdir()
    yield start
    for child in children:
        child.kill()


def test_a_forked_child_has_what_was_imported_and_one_started_anew_has_not(start, server):
    forked = start("tells_what_it_was_given", "decimal").channel.receive(10)
    anew = start("tells_what_it_was_given", "decimal", preloaded=()).channel.receive(10)
    assert (forked["modules"], anew["modules"]) == (["decimal"], [])


def test_a_forked_child_is_given_what_one_started_anew_is_given(start, server, tmp_path):
    read_fd, write_fd = os.pipe()
    forked, anew = (
        start("tells_what_it_was_given", inherit=[write_fd], preloaded=preloaded).channel.receive(10)
        for preloaded in (MODULES, ())
    )
    os.close(read_fd)
    os.close(write_fd)
    assert len(forked["descriptors"]) == len(anew["descriptors"])  # their channels have numbers of their own
    assert write_fd in forked["descriptors"]
    assert forked["main"] == anew["main"] == "__main__"
    assert forked["words"][2:] == anew["words"][2:] == ["tells_what_it_was_given"]
    assert Path(forked["words"][0]).name == Path(anew["words"][0]).name == "untrusted.py"
    assert forked["temp"] == anew["temp"] == str(tmp_path / "private" / "tmp")


def test_a_forked_child_has_no_power_in_its_namespace_and_can_gain_none(start, server):
    powers = start("tells_what_it_was_given").channel.receive(10)["powers"]
    assert powers.pop("NoNewPrivs") == "1"
    assert {name: int(value, 16) for name, value in powers.items()} == dict.fromkeys(powers, 0)


def test_a_server_that_has_died_is_followed_by_another_and_its_childrens_ends_are_still_seen(start, server):
    child = start("ignores_sigterm")
    child.channel.receive(10)
    os.kill(server.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while server.is_alive and time.monotonic() < deadline:
        time.sleep(0.01)
    child.kill()
    assert child.poll() == -signal.SIGKILL
    assert start("exits_seven").wait(10) == 7
    assert fork_client.server_for(strongest_sandbox(), scrubbed(os.environ), MODULES).pid != server.pid


def test_what_libraries_read_when_they_load_has_a_server_of_its_own(server):
    same = fork_client.server_for(strongest_sandbox(), scrubbed(os.environ, {"MAX_JOBS": "7"}), MODULES)
    other = fork_client.server_for(strongest_sandbox(), scrubbed(os.environ, {"OMP_NUM_THREADS": "1"}), MODULES)
    assert same is server
    assert other.pid != server.pid


@pytest.mark.parametrize("sandbox", [NO_SANDBOX, Sandbox("unshare", ("user", "mount")), Sandbox("bubblewrap", ("user", "pid"))])
def test_behind_a_sandbox_that_does_not_hide_the_server_nothing_is_forked(sandbox):
    assert fork_client.server_for(sandbox, scrubbed(os.environ), MODULES) is None


def test_where_a_fork_may_not_build_the_sandbox_the_child_is_started_anew(start, server, monkeypatch):
    """As on a system that allows namespaces to the tool `unshare` and not to Python."""
    monkeypatch.setattr(fork_client, "ForkServer", lambda environment, modules: server)
    monkeypatch.setattr(server, "close", lambda: None)
    assert fork_client._tried(strongest_sandbox(), {}, MODULES) is server
    monkeypatch.setattr(fork_client, "REPOSITORY", Path("/nowhere"))  # nothing can be mounted there
    assert fork_client._tried(strongest_sandbox(), {}, MODULES) is None
    monkeypatch.setattr(fork_client, "_tried", lambda *_: None)
    assert fork_client.server_for(strongest_sandbox(), scrubbed(os.environ), ("string",)) is None
    assert start("exits_seven", preloaded=("string",)).wait(10) == 7


def test_a_harness_with_hundreds_of_files_open_forks_as_well(start, server):
    """With a child for each of 64 cores the numbers of descriptors pass 512."""
    many = [os.open(os.devnull, os.O_RDONLY)]
    try:
        for below in (506, 509, 512, 1000):
            while many[-1] < below:
                many.append(os.dup(many[0]))
            assert start("exits_seven").wait(10) == 7
    finally:
        for each in many:
            os.close(each)


def test_a_server_that_was_begun_is_the_one_that_is_asked_for(server):
    environment = {**scrubbed(os.environ), "OMP_BEGUN": "1"}
    fork_client.begin(environment, MODULES)
    (begun,) = fork_client._begun.values()
    assert fork_client.server_for(strongest_sandbox(), environment, MODULES) is begun
    fork_client.begin(environment, MODULES)
    assert not fork_client._begun


def test_a_server_that_was_begun_ends_where_the_sandbox_turns_out_to_be_none_for_it():
    environment = {**scrubbed(os.environ), "OMP_BEGUN": "2"}
    fork_client.begin(environment, MODULES)
    (begun,) = fork_client._begun.values()
    assert fork_client.server_for(NO_SANDBOX, environment, MODULES) is None
    assert not begun.is_alive


def test_a_process_that_ends_waits_for_no_server_that_is_still_importing(tmp_path):
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(30)\n")
    script = (
        "import threading, time\nfrom harness.sandbox import fork_client as forking\nfrom harness.sandbox.sandbox_choice import strongest_sandbox\n"
        f"environment = {{'PYTHONPATH': {str(tmp_path)!r}}}\n"
        "threading.Thread(target=forking.server_for, args=(strongest_sandbox(), environment, ['slow']), daemon=True).start()\n"
        "while not forking._living: time.sleep(0.01)\n"
    )
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", script], cwd=HARNESS, check=True, timeout=60)
    assert time.monotonic() - began < 20


def test_a_module_that_cannot_be_imported_makes_no_server_and_the_child_is_started_anew(start):
    assert fork_client.server_for(strongest_sandbox(), scrubbed(os.environ), ("no_such_module",)) is None
    assert start("exits_seven", preloaded=("no_such_module",)).wait(10) == 7


def test_the_server_ends_with_a_harness_that_is_killed(server):
    program = textwrap.dedent(f"""
        import os, time
        from harness.sandbox import fork_client as forking
        from harness.sandbox.environment import scrubbed
        from harness.sandbox.sandbox_choice import strongest_sandbox
        print(forking.server_for(strongest_sandbox(), scrubbed(os.environ), {MODULES!r}).pid, flush=True)
        time.sleep(60)
    """)
    harness = subprocess.Popen([sys.executable, "-c", program], cwd=HARNESS, stdout=subprocess.PIPE)
    pid = int(harness.stdout.readline())
    harness.kill()
    harness.wait()
    harness.stdout.close()
    deadline = time.monotonic() + 5
    while _lives(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_two_that_ask_at_once_how_a_child_ended_hear_the_same_and_close_nothing_of_anothers():
    class SlowServer:
        def exit_code(self, pid):
            time.sleep(0.2)  # as long as the other needs to ask too
            return 7

    read, write = os.pipe()
    os.close(write)
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    child = fork_client.ForkedProcess(SlowServer(), ended.pid, read)
    ended.wait()
    with ThreadPoolExecutor(2) as both:
        assert list(both.map(lambda _: child.poll(), range(2))) == [7, 7]
    child.stdout.close()


def test_a_server_that_answers_late_is_ended_and_its_answer_is_nobodys(start, server):
    os.kill(server.pid, signal.SIGSTOP)
    server._control.settimeout(0.3)
    assert start("exits_seven").wait(10) == 7  # started anew
    assert not server.is_alive
    another = fork_client.server_for(strongest_sandbox(), scrubbed(os.environ), MODULES)
    assert another is not server
    assert start("exits_seven").wait(10) == 7


def test_what_a_process_has_made_so_far_is_still_collected_where_pytorch_was_there_already():
    script = (
        "import gc, sys, types\nfrom harness.sandbox.prestart import uncollected\n"
        "with uncollected():\n    assert not gc.isenabled()\n"
        "first = gc.get_freeze_count()\nassert first and gc.isenabled()\n"
        "sys.modules['torch'] = types.ModuleType('torch')\n"
        "with uncollected():\n    assert gc.isenabled()\n"
        "assert gc.get_freeze_count() <= first\n"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=HARNESS, check=False, timeout=60).returncode == 0


def test_the_module_that_looks_for_a_gpu_is_not_imported_before_a_fork():
    program = f"import sys, {', '.join(PRELOADED)}\nprint('torch.utils.cpp_extension' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.split() == ["False"]
