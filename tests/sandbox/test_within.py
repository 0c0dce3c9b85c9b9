"""What a child sees and may do inside: its folders, the machine's, the network, other processes, its environment."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from harness.sandbox.environment import scrubbed
from harness.sandbox.limits import ResourceLimits
from harness.sandbox.spawn import spawn

pytestmark = pytest.mark.processes

LIMITS = ResourceLimits(file_bytes=1 << 30)
linux = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")


@pytest.fixture
def looked(folders, way):
    """What a child behind `sandbox` saw when it looked around."""
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
        limits=LIMITS, sandbox=way.sandbox, preloaded=way.preloaded,
    )
    frame = child.channel.receive(20)
    child.kill()
    listener.close()
    return frame


def test_a_child_may_write_into_its_own_folders(looked):
    assert looked["private"] and looked["writable"]


def test_the_repository_and_the_machine_are_read_only_where_the_sandbox_says_so(looked, sandbox):
    places = ("new_in_repository", "changed_in_repository", "beside_repository", "interpreter")
    if sandbox.read_only_repository:
        assert {place: looked[place] for place in places} == dict.fromkeys(places, False)
        assert not looked["remounted"]
        assert not looked["disks"]
    else:
        assert looked["new_in_repository"]


def test_a_child_sees_no_network_where_the_sandbox_says_so(looked, sandbox):
    assert looked["network"] == ("net" not in sandbox.namespaces)


def test_a_child_sees_and_signals_no_process_outside_where_the_sandbox_says_so(looked, sandbox):
    if "pid" in sandbox.namespaces:
        assert len(looked["pids"]) <= 4
        assert not looked["signals_outside"]
        # The first process of bubblewrap is its own and has no more power than the child.
        assert not looked["parent_files"] or sandbox.name == "bubblewrap"
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


@linux
def test_a_child_makes_no_user_namespaces_of_which_a_machine_has_only_so_many(start, sandbox):
    if "user" not in sandbox.namespaces or sandbox.name == "bubblewrap":
        pytest.skip("what is not of our making has the machine's own limit")
    assert start("makes_namespaces", 3, sandbox=sandbox).channel.receive(30) == {"held": 0}


@linux
def test_a_childs_root_changes_no_setting_of_the_machine_and_leaves_nothing_beside_its_devices(start, sandbox):
    if not sandbox.read_only_repository or sandbox.name == "bubblewrap":
        pytest.skip("there are no mounts of our making here")
    places = ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", "/dev/null")
    found = start("changes_the_machine", *places, sandbox=sandbox).channel.receive(30)
    assert found == {"opened": ["/dev/null"], "made": False}
