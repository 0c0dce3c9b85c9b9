"""What the naive judge's process may import before it forks: nothing that begins CUDA."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_module_that_looks_for_a_gpu_is_not_imported_before_the_fork():
    program = (
        "import sys\nimport setuptools.command.build_ext\nimport harness.selftest.naive_server\n"
        "import harness.selftest.naive_loop\nprint('torch.utils.cpp_extension' in sys.modules, 'torch' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=True
    )
    assert ran.stdout.split() == ["False", "True"]
