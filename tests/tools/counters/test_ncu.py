"""Where ncu is looked for, and how it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import NothingToRun
from harness.tools.counters import ncu


def program(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "ncu"
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ncu, "_PLACES", (str(tmp_path / "installed" / "*"),))


def test_the_path_comes_first_then_the_toolkit_then_where_installers_put_it(nowhere, monkeypatch, tmp_path):
    assert ncu.find_tool() is None
    old, new = (program(tmp_path / "installed" / version) for version in ("2024.1", "2025.3"))
    assert ncu.find_tool() == str(new) != str(old)
    toolkit = program(tmp_path / "cuda" / "bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert ncu.find_tool() == str(toolkit)
    first = program(tmp_path / "first")
    monkeypatch.setenv("PATH", str(tmp_path / "first"))
    assert ncu.find_tool() == str(first)


def test_without_it_the_sentence_says_where_it_comes_from(nowhere):
    with pytest.raises(NothingToRun, match="Nsight Compute"):
        ncu.require_tool()


def test_the_clocks_are_left_alone_and_only_what_the_target_marks_is_counted(tmp_path):
    words = ncu.command("ncu", tmp_path / "log", ["python", "-m", "x"])
    assert words[-3:] == ["python", "-m", "x"]
    for flag, value in (("--clock-control", "none"), ("--profile-from-start", "off"), ("--print-units", "base")):
        assert words[words.index(flag) + 1] == value
