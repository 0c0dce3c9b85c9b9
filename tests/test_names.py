"""Code that only a GPU reaches is read, where it cannot be run: no name in it may be one that nothing defines."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.model.places import REPOSITORY

pytestmark = pytest.mark.processes

READ = ("harness", "benchmarks", "docs", "run.py", "tests")
# What is wrong on purpose, and candidates as their authors write them.
LEFT_OUT = ("tests/fixtures", "tests/adversarial")


def mistakes(*paths: str) -> str:
    """What ruff says of names: undefined, unused, or defined twice."""
    left_out = [word for path in LEFT_OUT for word in ("--exclude", path)]
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--select", "F", "--output-format", "concise"]
    done = subprocess.run([*command, *left_out, *paths], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout if done.returncode else ""


def test_every_name_is_defined_and_every_import_used():
    assert mistakes(*READ) == ""


def test_a_name_that_nothing_defines_would_be_seen(tmp_path):
    path = tmp_path / "only_on_a_gpu.py"
    path.write_text("def launch():\n    return passes.as_called\n")
    assert "Undefined name `passes`" in mistakes(str(path))
