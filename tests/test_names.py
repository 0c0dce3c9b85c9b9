"""Code that only a GPU reaches is read, where it cannot be run: no name in it may be one that nothing defines."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from harness.model.paths import REPOSITORY

pytestmark = pytest.mark.processes

READ = ("harness", "benchmarks", "docs", "run.py", "tests")
# What is wrong on purpose, and candidates as their authors write them.
LEFT_OUT = ("tests/fixtures", "tests/adversarial")


def mistakes(*paths: str, rules: str = "F") -> str:
    """What ruff says of names: by default which are undefined, unused, or defined twice."""
    left_out = [word for path in LEFT_OUT for word in ("--exclude", path)]
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--select", rules, "--output-format", "concise"]
    done = subprocess.run([*command, *left_out, *paths], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout if done.returncode else ""


def test_every_name_is_defined_and_every_import_used():
    assert mistakes(*READ) == ""


def test_a_name_that_nothing_defines_would_be_seen(tmp_path):
    path = tmp_path / "only_on_a_gpu.py"
    path.write_text("def launch():\n    return passes.as_called\n")
    assert "Undefined name `passes`" in mistakes(str(path))


def arguments_left_unused(*paths: str) -> set[str]:
    return set(re.findall(r"Unused \w+ argument: `(\w+)`", mistakes(*paths, rules="ARG")))


def test_a_gpus_backend_hands_on_all_that_it_is_given():
    """But for the channel, over which a CPU's turns come."""
    files = [f"harness/device/{name}.py" for name in ("cuda", "gpu_flush_buffers", "gpu_launches", "gpu_regions", "health", "nvml")]
    assert arguments_left_unused(*files) == {"channel"}


def test_a_module_in_an_arguments_place_would_be_seen(tmp_path):
    path = tmp_path / "only_on_a_gpu.py"
    path.write_text("import os\n\n\nclass Backend:\n    def left(self, waiting):\n        return self.health.left(os)\n")
    assert arguments_left_unused(str(path)) == {"waiting"}
