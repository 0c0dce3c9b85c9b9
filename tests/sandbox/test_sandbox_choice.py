"""What the sandbox says of itself, and the environment and limits it is built from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.sandbox import limits, sandbox_choice
from harness.sandbox.environment import private_places, scrubbed
from harness.sandbox.mounts import WRITE
from harness.sandbox.sandbox_choice import NO_SANDBOX, Sandbox, strongest_sandbox, why_no_sandbox

pytestmark = pytest.mark.processes


def test_the_text_of_a_full_sandbox_names_its_parts():
    sandbox = Sandbox("unshare", ("user", "pid", "mount", "ipc", "net"), True, True, True)
    assert sandbox.text == "unshare: user,pid,mount,ipc,net; repository read-only; neighbours hidden; cgroup"


def test_the_text_of_the_weakest_sandbox_says_that_it_is_no_more():
    assert NO_SANDBOX.text == "process group only; neighbours readable; no memory limit"


def test_the_best_sandbox_is_looked_for_once():
    assert strongest_sandbox() is strongest_sandbox()


@pytest.mark.parametrize(("found", "may", "chosen"), [
    (("unshare", "bwrap"), ("unshare", "bubblewrap"), "unshare"),
    (("unshare", "bwrap"), ("bubblewrap",), "bubblewrap"),
    (("bwrap",), ("unshare", "bubblewrap"), "bubblewrap"),
    (("unshare",), (), "process group only"),
])
def test_unshare_comes_before_bubblewrap_where_it_may_make_all_namespaces(monkeypatch, found, may, chosen):
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}" if name in found else None)
    monkeypatch.setattr(sandbox_choice, "_passes_trial", lambda sandbox: sandbox.name in may)
    assert strongest_sandbox.__wrapped__().name == chosen


def test_bubblewrap_binds_what_may_be_written_after_the_read_only_root():
    sandbox = Sandbox("bubblewrap", ("user", "pid", "mount", "ipc", "net"), True, False)
    words = sandbox.command(Path("/repository"), [(WRITE, "/private")])
    assert words.index("--bind") > words.index("--ro-bind")
    assert words[words.index("--bind"):][:3] == ["--bind", "/private", "/private"]
    assert "--unshare-net" in words and "--die-with-parent" in words and words[-1] == "--"


def test_a_sandbox_of_fewer_namespaces_asks_for_no_others():
    words = Sandbox("unshare", ("mount",), True, False).command(Path("/repository"), [])
    assert words[1:] == ["--mount", "--"]


def test_the_environment_keeps_what_compilers_need_and_drops_the_rest():
    seen = scrubbed(
        {"PATH": "/bin", "CUDA_HOME": "/cuda", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "x", "LD_PRELOAD": "y",
         "PYTHONPATH": "/packages", "PYTHONINSPECT": "1"},
        {"CUDA_VISIBLE_DEVICES": ""},
    )
    assert {"PATH", "CUDA_HOME", "LC_ALL", "PYTHONPATH"} <= set(seen)
    assert not {"AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "PYTHONINSPECT"} & set(seen)
    assert seen["CUDA_VISIBLE_DEVICES"] == "" and seen["PYTHONUNBUFFERED"] == "1"


def test_every_private_place_lies_in_the_private_folder():
    assert all(place.startswith("/private/") for place in private_places(Path("/private")).values())


def test_the_default_memory_limit_leaves_the_machine_a_fifth():
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert limits.default_limits().memory_bytes == pytest.approx(0.8 * total, rel=1e-6)


def test_a_group_gets_the_limits_it_has_controllers_for(tmp_path):
    for name in ("memory.max", "memory.swap.max"):
        (tmp_path / name).write_text("max")
    group = limits.Group(tmp_path)
    group.limit(limits.ResourceLimits(file_bytes=1, memory_bytes=1000, processes=7))
    assert (tmp_path / "memory.max").read_text() == "1000"
    assert (tmp_path / "memory.swap.max").read_text() == "0"
    assert not (tmp_path / "pids.max").exists()


def test_kills_for_memory_are_counted(tmp_path):
    assert limits.Group(tmp_path).out_of_memory_kills() == 0
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 2\noom_group_kill 0\n")
    assert limits.Group(tmp_path).out_of_memory_kills() == 2


def test_a_group_is_made_and_removed_where_the_machine_lets_us():
    group = limits.new_group()
    if group is None:
        pytest.skip("no writable cgroup (version 2) on this machine")
    assert group.path.is_dir()
    group.remove()
    assert not group.path.exists()


@pytest.mark.parametrize(("tools", "lacks"), [
    ((), "neither bwrap nor unshare is on the PATH"), (("unshare",), "unshare may make no namespaces here"),
])
def test_a_machine_without_a_sandbox_is_told_what_it_lacks(monkeypatch, tmp_path, tools, lacks):
    for name in tools:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    said = why_no_sandbox(NO_SANDBOX)
    assert lacks in said and "apt install bubblewrap" in said


def test_of_a_sandbox_that_is_there_nothing_is_told():
    assert why_no_sandbox(Sandbox("unshare", ("user", "mount"))) is None
