"""What a child sees of the user's files: what it was given, and nothing that lies beside it, wherever that is."""

from __future__ import annotations

import importlib
import os
import ssl
import sys
import sysconfig
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.paths import REPOSITORY, SHIPPED
from harness.sandbox import sandbox_choice
from harness.sandbox.mounts import COVER, EMPTY, SCRATCH, SHOW, WRITE
from harness.sandbox.sandbox_choice import Sandbox
from harness.sandbox.visible_files import machine_places, users_places, view, view_for
from tests.sandbox.conftest import LIMITS

ALONE = replace(LIMITS, own_scratch=True)


@pytest.fixture
def place(tmp_path):
    """A folder of candidates with two files, and folders of results and of builds beside it."""
    for name in ("candidates/mine.py", "candidates/other.py", "results/1.csv", "entries/mine/a.so", "entries/other/a.so"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def steps_below(place, steps):
    return [(kind, os.path.relpath(path, place)) for kind, path in steps if path.startswith(str(place))]


def test_of_a_covered_folder_only_what_is_named_is_shown(place):
    steps = view([place], [place / "candidates" / "mine.py"], [place / "entries" / "mine"])
    below = steps_below(place, steps)
    assert (SHOW, "candidates/mine.py") in below and (WRITE, "entries/mine") in below
    assert {path for _, path in below} <= {".", "candidates/mine.py", "entries/mine"}


def test_what_is_shown_as_a_whole_still_hides_what_is_covered_in_it(place):
    steps = view(["/", place / "candidates"], [place, place / "candidates" / "mine.py"], [])
    assert steps_below(place, steps)[-2:] == [(COVER, "candidates"), (SHOW, "candidates/mine.py")]


def test_a_project_in_a_folder_for_temporary_files_is_none_of_a_childs_own(place):
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        steps = view([SCRATCH, folder], [], [])
    assert steps == [(EMPTY, SCRATCH), (COVER, folder)]


def test_a_folder_that_is_both_shown_and_covered_is_covered(place):
    assert steps_below(place, view([place], [place.parent, place], []))[-1] == (COVER, ".")


def test_steps_that_would_change_nothing_are_left_out(place):
    steps = view([place, place / "results"], ["/usr", place / "candidates", place / "candidates" / "mine.py"], [])
    assert "/usr" not in dict(map(reversed, steps))
    assert (COVER, "results") not in steps_below(place, steps)
    assert (SHOW, "candidates/mine.py") not in steps_below(place, steps)


def test_what_a_link_leads_to_is_shown_by_both_names(place):
    (place / "link").symlink_to(place / "entries")
    shown = {path for kind, path in view([place], [place / "link" / "mine"], []) if kind == SHOW}
    assert {str(place / "link" / "mine"), str(place / "entries" / "mine")} <= shown


def test_every_folder_of_the_root_that_is_none_of_the_systems_is_covered():
    covered = set(users_places())
    homes = {os.path.realpath(each) for each in ("/root", "/home", "/mnt", "/srv", "/var") if os.path.isdir(each)}
    assert homes <= covered
    assert not {"/", "/usr", "/etc", "/opt", "/dev", "/proc", "/sys", "/lib"} & covered


def test_no_project_takes_the_system_away(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/usr/local")
    monkeypatch.setenv("TMPDIR", "/opt")
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert not {"/usr/local", "/opt"} & set(users_places())
    assert (COVER, "/usr") not in view_for(tmp_path, [], [], ["/usr", "/"])


def test_the_shipped_files_are_covered_and_the_package_shown():
    steps = dict(map(reversed, view_for(REPOSITORY, [], [])))
    assert str(SHIPPED) in users_places()
    assert str(SHIPPED / "candidates") not in steps
    assert str(REPOSITORY / "harness") in steps or not str(REPOSITORY).startswith(tuple(users_places()))


def test_where_this_python_and_its_packages_lie_is_shown():
    shown = set(machine_places())
    assert {sys.prefix, sys.base_prefix, sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"]} <= shown


def test_a_program_is_found_in_a_prefix_of_its_own_and_a_home_is_no_such_prefix(monkeypatch, tmp_path):
    for name in (".local/bin/ninja", "bin/g++", "gcc-13/bin/c++", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / each) for each in (".local/bin", "bin", "gcc-13/bin")))
    machine_places.cache_clear()
    try:
        below = steps_below(tmp_path, view_for(tmp_path / "none", [], []))
    finally:
        machine_places.cache_clear()
    assert {(SHOW, ".local/bin"), (SHOW, "bin"), (SHOW, "gcc-13")} <= set(below)
    assert not {(SHOW, "."), (SHOW, ".local")} & set(below)


@pytest.mark.processes
def test_a_child_reads_what_it_was_given_and_nothing_beside_it(start, way, place):
    files = [place / name for name in ("candidates/mine.py", "candidates/other.py", "results/1.csv", "entries/mine/a.so",
                                       "entries/other/a.so")]
    given = [files[0], place / "entries" / "mine"]
    child = start("reads", *files, sandbox=way.sandbox, limits=ALONE, readable=given, hidden=[place])
    expected = [files[0], files[3]] if way.sandbox.hides_neighbours else files
    assert child.channel.receive(30)["read"] == list(map(str, expected))


@pytest.mark.processes
def test_a_child_reads_neither_homes_nor_the_harnesss_candidates_and_problems(start, way):
    theirs = ["/root", "/home", "/var/tmp", "/run/lock", "/var/run/lock", "/run/user", SHIPPED / "candidates", SHIPPED / "problems", SHIPPED / "configs"]
    found = start("reads", *filter(os.path.isdir, theirs), sandbox=way.sandbox, limits=ALONE).channel.receive(30)["read"]
    if not way.sandbox.hides_neighbours:
        assert str(SHIPPED / "candidates") in found
        return
    # A home may be there, as the folder that an interpreter lies in.
    assert {each for each in found if each not in ("/root", "/home")} == set()


@pytest.mark.processes
def test_a_child_still_reads_what_compilers_libraries_and_cuda_need(start, way):
    torch = importlib.import_module("torch")
    needed = ["/etc/ld.so.cache", "/usr/lib", "/proc/self/maps", "/sys/devices", "/dev/null", torch.__file__, sys.executable,
              ssl.get_default_verify_paths().cafile or "/etc/ssl/certs", *map(str, Path("/dev").glob("nvidia*"))]
    needed = [each for each in needed if os.path.exists(each)]
    assert start("reads", *needed, sandbox=way.sandbox, limits=ALONE).channel.receive(30)["read"] == needed


@pytest.mark.processes
def test_what_is_covered_may_not_be_written_to(start, way):
    if not way.sandbox.hides_neighbours:
        pytest.skip("nothing is covered here")
    covered = [each for each in users_places() if os.path.isdir(each) and each != SCRATCH]
    assert start("uses_scratch", "none", *covered, sandbox=way.sandbox, limits=ALONE).channel.receive(30)["written"] == []


def test_the_record_says_whether_neighbours_are_readable():
    sandbox = Sandbox("unshare", ("user", "pid", "mount"), True)
    assert "neighbours readable" in sandbox.text and "neighbours readable" in sandbox_choice.NO_SANDBOX.text
    assert "neighbours hidden" in replace(sandbox, hides_neighbours=True).text


def test_bubblewrap_takes_the_steps_in_their_order_and_closes_what_it_covered(place, monkeypatch):
    monkeypatch.setattr(sandbox_choice, "_tmpfs_of_a_size", lambda: ("--size", "7", "--tmpfs"))
    sandbox = Sandbox("bubblewrap", ("user", "pid", "mount", "ipc", "net"), True, False, True)
    steps = [(COVER, "/home"), (SHOW, "/home/u/venv"), (EMPTY, "/tmp"), (WRITE, "/tmp/private")]
    words = " ".join(sandbox.command(Path("/repository"), steps))
    assert words.endswith(
        "--size 7 --tmpfs /home --ro-bind /home/u/venv /home/u/venv --size 7 --tmpfs /tmp "
        "--bind /tmp/private /tmp/private --remount-ro /home --"
    )
