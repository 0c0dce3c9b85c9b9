"""Children that misbehave: their folders, the ways to start them, and one that has looked around."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.sandbox.environment import scrubbed
from harness.sandbox.fork_client import server_for
from harness.sandbox.limits import ResourceLimits
from harness.sandbox.sandbox_choice import NO_SANDBOX, Sandbox, strongest_sandbox
from harness.sandbox.spawn import spawn

PRELOADED = ("json",)
LIMITS = ResourceLimits(file_bytes=1 << 30)


class Way(NamedTuple):
    """A way to start a child: its sandbox, and what a process that it is forked from has imported; () for a new one."""

    sandbox: Sandbox
    preloaded: tuple[str, ...]


@pytest.fixture
def folders(tmp_path):
    """A repository with the misbehaving program in it, a private folder and one more to write to."""
    for name in ("repository", "private", "writable"):
        (tmp_path / name).mkdir()
    shutil.copy(Path(__file__).with_name("untrusted.py"), tmp_path / "repository")
    return tmp_path


@pytest.fixture(params=["best", "forked", "weakest"])
def way(request):
    """Each way to start a child; "forked" is the best sandbox around a fork of a process that has imported already."""
    if request.param == "forked" and server_for(strongest_sandbox(), scrubbed(os.environ), PRELOADED) is None:
        pytest.skip("this machine's sandbox is none that a fork can build")
    sandbox = NO_SANDBOX if request.param == "weakest" else strongest_sandbox()
    return Way(sandbox, PRELOADED if request.param == "forked" else ())


@pytest.fixture
def sandbox(way):
    return way.sandbox


@pytest.fixture
def start(request, folders):
    """`start(deed, …)`: a child that does that, in the test's way where it asks for one."""
    children = []

    def start(deed, *arguments, sandbox=None, limits=LIMITS, environment=None, **more):
        if "way" in request.fixturenames:
            more["preloaded"] = request.getfixturevalue("way").preloaded
        child = spawn(
            "untrusted", arguments=[deed, *map(str, arguments)],
            environment=scrubbed(environment or os.environ), private=folders / "private",
            repository=folders / "repository", limits=limits, sandbox=sandbox, **more,
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
