"""A missing compiler and a full disk are looked for on the machine itself; words of a candidate's process prove neither."""

from __future__ import annotations

import errno
import os

import pytest

from harness.build.machine_faults import machine_fault, missing_compiler, without_room
from harness.build.outcome import Ending, before_building, judge
from harness.build.toolchain import find_toolchain
from harness.model.candidate import read_candidate
from harness.model.verdict import ReasonCode, Status

NO_SPACE = "fatal error: error writing to /tmp/x.s: No space left on device"
CPP = """
import torch
from torch.utils.cpp_extension import load_inline
extension = load_inline(name="mine", cpp_sources="int f() { return 1; }", functions=["f"])
class ModelNew(torch.nn.Module): pass
"""


@pytest.fixture
def tools(monkeypatch, tmp_path):
    """`tools(*names)`: a PATH with programs of these names and no other, and no CXX."""
    def only(*names):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in names:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.delenv("CXX", raising=False)

    return only


@pytest.fixture
def full_disk(monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)


@pytest.fixture
def cpp_candidate(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(CPP)
    return read_candidate(path)


@pytest.mark.parametrize("name", ["c++", "g++"])
def test_one_compiler_on_the_path_is_enough(tools, name):
    tools(name)
    assert missing_compiler() is None


def test_a_cxx_that_names_no_program_is_told_though_there_is_another(tools, monkeypatch):
    tools("g++")
    monkeypatch.setenv("CXX", "nosuch -O2")
    assert missing_compiler() == "CXX names nosuch -O2, and there is no such program"


def test_a_cxx_with_words_before_the_compiler_counts_by_its_first_word(tools, monkeypatch):
    tools("ccache")
    monkeypatch.setenv("CXX", "ccache g++")
    assert missing_compiler() is None


def test_cpp_is_skipped_before_its_build_where_there_is_no_compiler(tools, cpp_candidate):
    tools()
    verdict = before_building(cpp_candidate, find_toolchain(None)).verdict
    assert (verdict.status, verdict.reason_code) == (Status.SKIPPED, ReasonCode.NO_CXX)
    assert "apt install g++, or set CXX" in verdict.reason


def test_cpp_is_built_where_there_is_one(tools, cpp_candidate):
    tools("c++")
    assert before_building(cpp_candidate, find_toolchain(None)) is None


def test_a_full_disk_is_told_with_its_folder_and_what_to_free(full_disk, tmp_path):
    verdict = machine_fault(NO_SPACE, [tmp_path])
    assert (verdict.status, verdict.reason_code) == (Status.SKIPPED, ReasonCode.NO_DISK)
    assert verdict.reason.startswith(f"{tmp_path} on this machine cannot be written (No space left on device)")


def test_who_says_that_a_disk_is_full_which_is_not_is_not_believed(tmp_path):
    assert machine_fault(NO_SPACE, [tmp_path]) is None


def test_who_says_that_there_is_no_compiler_where_there_is_one_is_not_believed(tools, tmp_path):
    tools("g++")
    assert machine_fault("InvalidCxxCompiler: No working C++ compiler found", [tmp_path]) is None


def test_words_of_something_else_are_no_fault_of_the_machines(full_disk, tmp_path):
    assert machine_fault("expected ';' before '}'", [tmp_path]) is None


def test_a_folder_that_is_not_there_cannot_be_written(tmp_path):
    assert "No such file or directory" in without_room([tmp_path / "gone"]).reason


@pytest.mark.parametrize("kind", ["compile_error", "import_error"])
def test_a_build_on_a_full_disk_is_skipped(full_disk, cpp_candidate, tmp_path, kind):
    failure = {"kind": kind, "message": "[Errno 28] No space left on device", "line": 1}
    answer = {"extensions": [], "log": "", "failure": failure, "warnings": [], "files": []}
    build, _ = judge(Ending(answer), cpp_candidate, find_toolchain(None), tmp_path, 1.0, 60.0)
    assert build.verdict.reason_code is ReasonCode.NO_DISK


def test_a_builder_that_dies_on_a_full_disk_is_skipped(full_disk, cpp_candidate, tmp_path):
    ending = Ending(None, "died", 1, "exited with code 1", output=NO_SPACE)
    build, _ = judge(ending, cpp_candidate, find_toolchain(None), tmp_path, 1.0, 60.0)
    assert build.verdict.reason_code is ReasonCode.NO_DISK
