"""Children that misbehave: their folders, the ways to start them, and one that has looked around."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.sandbox.environment import scrubbed
from harness.sandbox.fork_client import server_for
from harness.sandbox.limits import Limits
from harness.sandbox.spawn import spawn
from harness.sandbox.strongest import NO_WALL, Wall, best_wall

PRELOADED = ("json",)
LIMITS = Limits(file_bytes=1 << 30)


class Way(NamedTuple):
    """A way to start a child: its wall, and what a process that it is forked from has imported; () for a new one."""

    wall: Wall
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
    """Each way to start a child; "forked" is the best wall around a fork of a process that has imported already."""
    if request.param == "forked" and server_for(best_wall(), scrubbed(os.environ), PRELOADED) is None:
        pytest.skip("this machine's wall is none that a fork can build")
    wall = NO_WALL if request.param == "weakest" else best_wall()
    return Way(wall, PRELOADED if request.param == "forked" else ())


@pytest.fixture
def wall(way):
    return way.wall


@pytest.fixture
def start(request, folders):
    """`start(deed, …)`: a child that does that, in the test's way where it asks for one."""
    children = []

    def start(deed, *arguments, wall=None, limits=LIMITS, environment=None, **more):
        if "way" in request.fixturenames:
            more["preloaded"] = request.getfixturevalue("way").preloaded
        child = spawn(
            "untrusted", arguments=[deed, *map(str, arguments)],
            environment=scrubbed(environment or os.environ), private=folders / "private",
            repository=folders / "repository", limits=limits, wall=wall, **more,
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
