"""PyTorch without its compiled bytecode: what the doctor notes, and what a run says before it begins."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from harness.cli.diagnosis.host import NOTE, advice_on_bytecode, bytecode_finding
from harness.cli.flags import understood
from harness.cli.verbs import run as verb
from harness.model.errors import InputError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A torch of source files alone, the first on the path."""
    folder = tmp_path / "py torch" / "torch"
    (folder / "_inductor").mkdir(parents=True)
    for name in ("__init__.py", "_inductor/compile_fx.py"):
        (folder / name).write_text("")
    monkeypatch.setattr(sys, "path", [str(folder.parent)])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return folder


@pytest.mark.processes
def test_it_is_a_note_with_the_command_that_makes_it(package):
    found = bytecode_finding()
    assert found is not None and found.state == NOTE and found.hint.endswith(f"-m compileall -q '{package}'")
    subprocess.run(shlex.split(found.hint), check=True)
    assert bytecode_finding() is None
    assert advice_on_bytecode() is None


def test_a_run_is_told_where_the_command_may_write(package, monkeypatch):
    assert f"-m compileall -q '{package}'" in advice_on_bytecode()
    monkeypatch.setattr(os, "access", lambda path, mode: (str(path), mode) != (str(package), os.W_OK))
    assert advice_on_bytecode() is None
    assert bytecode_finding() is not None


def test_without_a_torch_there_is_nothing_to_say(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert bytecode_finding() is None and advice_on_bytecode() is None


@pytest.mark.processes
def test_a_run_says_so_before_it_begins(monkeypatch, capsys):
    def judge(*_: object) -> None:
        raise InputError("it began", hint=capsys.readouterr().err)

    monkeypatch.setattr("harness.cli.verbs.run.advice_on_bytecode", lambda: "type this once")
    monkeypatch.setattr("harness.runs.fleet.fleet.run", judge)
    with pytest.raises(InputError, match="it began") as began:
        verb.run(understood(["problems/tril_matmul.yaml", "--device", "cpu"]))
    assert began.value.hint.rstrip().endswith("type this once")
