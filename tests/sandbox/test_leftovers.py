"""Folders as a hostile process leaves them: deep, locked, full of links, with a pipe in a file's place."""

from __future__ import annotations

import os
import sys

import pytest

from harness.sandbox.leftovers import content_of, folders_and_files, remove_tree

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes and links are POSIX's")


def nested(top, depth):
    """`depth` folders in one another below `top`, made without a path that long; a file lies in each."""
    here = os.open(".", os.O_RDONLY)
    os.chdir(top)
    for _ in range(depth):
        os.mkdir("deeper")
        os.chdir("deeper")
        open("file", "w").close()
    os.fchdir(here)
    os.close(here)


@posix
def test_folders_deeper_than_python_calls_itself_and_than_a_path_is_long_are_gone(tmp_path):
    top = tmp_path / "top"
    top.mkdir()
    nested(top, sys.getrecursionlimit() + 200)
    remove_tree(top)
    assert not top.exists()


@posix
def test_locked_folders_are_gone_and_what_links_point_to_stays(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    top = tmp_path / "top"
    (top / "locked" / "inner").mkdir(parents=True)
    (top / "locked" / "inner" / "file").touch()
    (top / "link").symlink_to(kept)
    (top / "locked" / "inner" / "link").symlink_to(kept)
    (top / "locked" / "inner").chmod(0)
    (top / "locked").chmod(0)
    remove_tree(top)
    assert not top.exists()
    assert (kept / "file").read_text() == "kept"


@posix
def test_a_link_in_the_folders_place_is_not_followed(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "link")
    assert (tmp_path / "kept").is_dir()


def test_what_is_not_there_is_no_error(tmp_path):
    remove_tree(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


@posix
def test_a_pipe_in_a_files_place_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "report.json")
    (tmp_path / "file").write_bytes(b"0123456789")
    assert content_of(tmp_path / "report.json") == b""
    assert content_of(tmp_path) == content_of(tmp_path / "nothing") == b""
    assert content_of(tmp_path / "file", 4) == b"0123"
    assert content_of(tmp_path / "file") == b"0123456789"


@posix
def test_a_walk_counts_each_once_and_follows_no_link(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").touch()
    (tmp_path / "a" / "b" / "link").symlink_to(tmp_path)
    assert sorted(entry.name for entry in folders_and_files(tmp_path)) == ["a", "b", "file", "link"]
