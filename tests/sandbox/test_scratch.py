"""A child's own /tmp: empty and writable, with what it needs of the machine's seen in it and nothing else."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.sandbox.environment import named_in
from harness.sandbox.limits import default_limits
from harness.sandbox.mounts import SCRATCH, SCRATCH_BYTES
from tests.sandbox.conftest import LIMITS

pytestmark = pytest.mark.processes

OF_ITS_OWN = replace(LIMITS, own_scratch=True)
NAME = f"kernel-referee-test-{secrets.token_hex(4)}"


class Place(NamedTuple):
    candidates: Path
    other: Path


@pytest.fixture
def below_tmp():
    """Two folders in the machine's /tmp, wherever the tests' own lie, with a file in each."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as candidates, tempfile.TemporaryDirectory(dir=SCRATCH) as other:
        for folder in (candidates, other):
            Path(folder, "file.py").write_text("")
        yield Place(Path(candidates), Path(other))


@pytest.fixture
def used(start, way, below_tmp):
    """What a child found in /tmp that may read one folder of the machine's and not the one beside it."""
    paths = [below_tmp.candidates, below_tmp.candidates / "file.py", below_tmp.other / "file.py"]
    readable = [below_tmp.candidates / "file.py"]
    child = start("uses_scratch", NAME, *paths, sandbox=way.sandbox, limits=OF_ITS_OWN, readable=readable)
    return child.channel.receive(30)


def test_it_is_empty_but_for_what_the_child_needs_and_may_be_written_to(used, sandbox, folders, below_tmp):
    if not sandbox.hides_neighbours:
        pytest.skip("without namespaces /tmp is the machine's")
    needed = [below_tmp.candidates, folders, sys.prefix, *map(Path, sys.path), *map(Path, named_in(os.environ))]
    tops = {Path(place).parts[2] for place in map(os.path.abspath, needed) if place.startswith(f"{SCRATCH}/")}
    assert set(used["found"]) <= tops
    assert used["made"] and used["own"]
    assert not Path(SCRATCH, NAME).exists()


def test_of_the_machines_it_sees_what_it_was_given_and_writes_to_none_of_it(used, sandbox, below_tmp):
    if not sandbox.hides_neighbours:
        pytest.skip("without namespaces /tmp is the machine's")
    assert used["seen"] == [str(below_tmp.candidates), str(below_tmp.candidates / "file.py")]
    assert not {str(below_tmp.candidates / "file.py"), str(below_tmp.other / "file.py")} & set(used["written"])
    assert not (below_tmp.candidates / "was-here").exists()  # its own /tmp has a folder of that name
    assert not used["unmounted"]


def test_it_is_held_to_a_size(used, sandbox):
    if not sandbox.hides_neighbours:
        pytest.skip("without namespaces /tmp is the machine's")
    assert used["bytes"] == SCRATCH_BYTES


def test_it_is_gone_with_the_child_and_no_other_sees_it(start, way):
    for _ in range(2):
        child = start("uses_scratch", NAME, sandbox=way.sandbox, limits=OF_ITS_OWN)
        found = child.channel.receive(30)
        child.kill()
        if way.sandbox.hides_neighbours:
            assert found["made"] and NAME not in found["found"]
        else:
            Path(SCRATCH, NAME, "was-here").unlink()
            Path(SCRATCH, NAME).rmdir()


def test_a_child_that_asks_for_none_has_the_machines_which_the_sandbox_makes_read_only(start, way):
    found = start("uses_scratch", NAME, sandbox=way.sandbox).channel.receive(30)
    if way.sandbox.read_only_repository:
        assert not found["made"]
    else:
        Path(SCRATCH, NAME, "was-here").unlink()
        Path(SCRATCH, NAME).rmdir()


def test_builders_and_workers_ask_for_one():
    assert default_limits().own_scratch and default_limits(gpu=False).own_scratch


def test_paths_are_found_in_lists_and_flags_of_the_environment():
    named = named_in({"PATH": "/tmp/a/bin:/usr/bin", "NVCC_PREPEND_FLAGS": "-I/tmp/b -DX=1", "LANG": "C"})
    assert {"/tmp/a/bin", "/usr/bin", "/tmp/b"} <= set(named)


def test_a_path_with_a_blank_is_one_in_a_list():
    assert {"/tmp/my cuda", "/usr/bin"} <= set(named_in({"PATH": "/tmp/my cuda:/usr/bin"}))
