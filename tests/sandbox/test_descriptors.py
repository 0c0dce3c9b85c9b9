"""The limit on open files is raised where it is too low, and never lowered."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(("count", "expected"), [(700, 700), (100, 256), (10**9, 4096)])
def test_the_limit_is_raised_as_far_as_the_system_allows(count, expected):
    program = (
        "import resource, sys\n"
        "from harness.sandbox.descriptors import allow_descriptors\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))\n"
        f"allow_descriptors({count})\n"
        "print(*resource.getrlimit(resource.RLIMIT_NOFILE))\n"
    )
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4096:
        pytest.skip("fewer than 4096 files are allowed here")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == [str(expected), "4096"]
