"""Room in the cache: what goes first, and that a run that is under way loses nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from harness.build.cache_space import DEFAULT_LIMIT_BYTES, Lease, holdings, limit_bytes, make_room, remove
from harness.model.errors import InputError

HOUR = 3600.0


def entry(root, name, *, age_s, size=1000, built_by="nvcc 13.0"):
    folder = root / "entries" / name
    folder.mkdir(parents=True)
    (folder / "0-tile.so").write_bytes(b"x" * size)
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({"build": {"built_by": built_by, "extensions": [{}]}}))
    used = time.time() - age_s
    os.utime(manifest, (used, used))
    return folder


def names(found):
    return [each.path.name for each in found]


def test_the_least_recently_used_comes_first_and_each_has_its_kind(tmp_path):
    entry(tmp_path, "new", age_s=10)
    entry(tmp_path, "old", age_s=HOUR, built_by="g++ 12.2")
    (tmp_path / "warm" / "2.13.0-sm_90a" / "key").mkdir(parents=True)
    found = holdings(tmp_path)
    assert names(found) == ["old", "new", "key"]
    assert [each.kind for each in found] == ["C++", "CUDA", "Triton and Inductor"]
    assert found[0].size_bytes > 1000


def test_room_is_made_by_removing_the_least_recently_used_and_no_more(tmp_path):
    for number, name in enumerate(["newest", "middle", "oldest"]):
        entry(tmp_path, name, age_s=number * HOUR + 60, size=1000)
    total = sum(each.size_bytes for each in holdings(tmp_path))
    assert names(make_room(tmp_path, total)) == []
    assert names(make_room(tmp_path, total - 1)) == ["oldest"]
    assert names(holdings(tmp_path)) == ["middle", "newest"]
    assert not list((tmp_path / "staging").iterdir())


def test_what_was_used_since_a_living_run_began_stays_even_when_there_is_no_room(tmp_path):
    entry(tmp_path, "before", age_s=HOUR)
    lease = Lease(tmp_path)
    entry(tmp_path, "since", age_s=-1)
    assert names(make_room(tmp_path, 0)) == ["before"]
    lease.end()
    time.sleep(1.1)
    assert names(make_room(tmp_path, 0)) == ["since"]


def test_what_is_used_between_listing_and_removing_stays(tmp_path):
    folder = entry(tmp_path, "tile", age_s=HOUR)
    listed = holdings(tmp_path)
    lease = Lease(tmp_path)
    os.utime(folder / "manifest.json")
    assert remove(tmp_path, listed) == []
    assert folder.exists()
    lease.end()


@pytest.mark.processes
def test_the_lease_of_a_run_that_was_killed_protects_nothing(tmp_path):
    script = (
        "import sys, os; from pathlib import Path; from harness.build.cache_space import Lease\n"
        "lease = Lease(Path(sys.argv[1])); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert len(list((tmp_path / "leases").iterdir())) == 1
    entry(tmp_path, "tile", age_s=0)
    time.sleep(0.05)
    assert names(make_room(tmp_path, 0)) == ["tile"]
    assert not list((tmp_path / "leases").iterdir())


def test_an_empty_cache_needs_no_room(tmp_path):
    assert make_room(tmp_path / "none", 0) == []


@pytest.mark.parametrize(("text", "expected"), [
    ("", DEFAULT_LIMIT_BYTES), ("500M", 500 << 20), ("1.5G", 3 << 29), ("2TiB", 2 << 40), ("0", 0),
])
def test_the_limit_is_read_as_people_write_it(text, expected, monkeypatch):
    monkeypatch.setenv("KERNEL_REFEREE_CACHE_LIMIT", text)
    assert limit_bytes() == expected


def test_a_limit_that_is_no_size_is_refused(monkeypatch):
    monkeypatch.setenv("KERNEL_REFEREE_CACHE_LIMIT", "plenty")
    with pytest.raises(InputError, match="no size"):
        limit_bytes()
