"""What the cache keeps, and what makes it build anew."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from harness.build.cache import Cache, sha256_of, sources_untold
from harness.build.compiler_report import KernelReport
from harness.build.product import Build, BuiltExtension
from harness.build.toolchain import Toolchain
from harness.model.candidate import read_candidate
from harness.model.verdict import ReasonCode, Status, Verdict

TOOLCHAIN = Toolchain(
    "2.11.0", "13.0", "/bin/nvcc", "13.0", "/bin/g++", "12.2", "3.12.1", "x86_64", "9.0a", False
)
KERNEL = KernelReport("tile", "sm_90a", 32, 0, 0, 8192, 0)


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


@pytest.fixture
def candidate(tmp_path):
    path = tmp_path / "tile.py"
    path.write_text("class ModelNew: pass\n")
    return read_candidate(path)


@pytest.fixture
def build(tmp_path):
    library = tmp_path / "tile.so"
    library.write_bytes(b"machine code")
    extension = BuiltExtension("0123456789abcdef", "tile", library, "", True)
    return Build(None, (extension,), (KERNEL,), 47.7, arch="sm_90a", built_by="nvcc 13.0", warnings="one")


def test_a_file_of_blank_lines_has_its_key_at_once(cache, tmp_path):
    path = tmp_path / "blank.py"
    path.write_text("class ModelNew: pass\n" + 200_000 * "\n", encoding="utf-8")
    began = time.monotonic()
    cache.key(read_candidate(path), TOOLCHAIN)
    assert time.monotonic() - began < 10


def test_what_was_stored_is_found_again(cache, build):
    stored = cache.store("key", build)
    found = cache.lookup("key")
    assert found == replace(stored, cached=True)
    assert found.extensions[0].path.read_bytes() == b"machine code"
    assert found.extensions[0].sha256 == sha256_of(found.extensions[0].path)


def test_a_library_that_has_changed_is_thrown_away(cache, build):
    stored = cache.store("key", build)
    stored.extensions[0].path.chmod(0o755)
    stored.extensions[0].path.write_bytes(b"other code")
    assert cache.lookup("key") is None
    assert not stored.extensions[0].path.exists()


def test_a_library_that_is_gone_is_built_anew(cache, build):
    cache.store("key", build).extensions[0].path.unlink()
    assert cache.lookup("key") is None


def test_a_broken_manifest_is_no_entry(cache, build):
    stored = cache.store("key", build)
    (stored.extensions[0].path.parent / "manifest.json").write_text("{")
    assert cache.lookup("key") is None


def test_a_file_the_build_depends_on_is_looked_at_again(cache, build, tmp_path):
    header = tmp_path / "tile.cuh"
    header.write_text("first")
    cache.store("key", build, {str(header): sha256_of(header)})
    assert cache.lookup("key") is not None
    header.write_text("second")
    assert cache.lookup("key") is None


def test_failed_builds_are_not_kept_and_compiled_ones_are(cache, build):
    failed = replace(build, verdict=Verdict(Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR, "why"))
    assert cache.store("failed", failed) is failed
    assert cache.lookup("failed") is None
    compiled = Build(Verdict(Status.COMPILED, ReasonCode.NO_GPU, "for sm_90a"), kernels=(KERNEL,))
    cache.store("compiled", compiled)
    assert cache.lookup("compiled") == replace(compiled, cached=True)


def test_storing_again_replaces_the_entry(cache, build):
    cache.store("key", build)
    cache.store("key", replace(build, seconds=1.0))
    assert cache.lookup("key").seconds == 1.0


@pytest.mark.parametrize(
    "change", [{"arch": "8.0"}, {"torch": "2.13.0"}, {"nvcc_version": "12.8"}, {"host": "other"},
     {"driver": "590.1"}, {"nvcc_build": "13.0.99"}, {"environment": (("NVCC_APPEND_FLAGS", "-G"),)}]
)
def test_the_key_changes_with_the_toolchain(cache, candidate, change):
    assert cache.key(candidate, replace(TOOLCHAIN, **change)) != cache.key(candidate, TOOLCHAIN)


def test_the_key_is_the_contents_and_not_the_place(cache, candidate, tmp_path):
    (tmp_path / "other").mkdir()
    moved = tmp_path / "other" / "renamed.py"
    moved.write_text(candidate.source)
    assert cache.key(read_candidate(moved), TOOLCHAIN) == cache.key(candidate, TOOLCHAIN)


def test_of_a_source_that_asks_for_its_own_name_the_name_is_part_of_the_key(cache, tmp_path):
    source = "from pathlib import Path\nload(name='k', sources=[str(Path(__file__).%s)])\nclass ModelNew: pass\n"
    for asks, is_same in (("with_suffix('.cpp')", False), ("parent / 'k.cpp'", True)):
        paths = [tmp_path / "a.py", tmp_path / "b.py"]
        for path in paths:
            path.write_text(source % asks)
        one, other = (cache.key(read_candidate(path), TOOLCHAIN) for path in paths)
        assert (one == other) == is_same


def in_folder(folder, source, files):
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    path = folder / "loads.py"
    path.write_text(source)
    return read_candidate(path)


LOADS = "load(name='x', sources=['x.cu'])\nclass ModelNew: pass\n"


def test_which_sources_lie_beside_a_candidate_that_reads_some_is_part_of_its_key_and_what_is_in_them_is_not(cache, tmp_path):
    one = in_folder(tmp_path / "one", LOADS, {"x.cu": "first", "x.cuh": "header"})
    moved = in_folder(tmp_path / "moved", LOADS, {"x.cu": "first", "x.cuh": "header"})
    (tmp_path / "moved" / "x.cuh").write_text("another header")
    assert cache.key(one, TOOLCHAIN) == cache.key(moved, TOOLCHAIN)
    (tmp_path / "moved" / "y.cuh").write_text("one more, which may be found first")
    assert cache.key(one, TOOLCHAIN) != cache.key(moved, TOOLCHAIN)


def test_each_state_of_the_files_that_a_build_read_is_kept(cache, build, tmp_path):
    header = tmp_path / "tile.cuh"
    for seconds, text in enumerate(("first", "second")):
        header.write_text(text)
        cache.store("key", replace(build, seconds=float(seconds)), {str(header): sha256_of(header)}, tmp_path)
    for seconds, text in enumerate(("first", "second")):
        header.write_text(text)
        assert cache.lookup("key", tmp_path).seconds == seconds
    header.write_text("third")
    assert cache.lookup("key", tmp_path) is None


def test_a_build_that_has_the_place_in_it_and_one_of_files_elsewhere_are_of_one_place(cache, build, tmp_path):
    one, moved = tmp_path / "one", tmp_path / "moved"
    cache.store("bound", replace(build, is_bound=True), {}, one)
    outside = tmp_path / "common.cuh"
    outside.write_text("shared")
    cache.store("outside", build, {str(outside): sha256_of(outside)}, one)
    for key in ("bound", "outside"):
        assert cache.lookup(key, moved) is None
        assert cache.lookup(key, one) is not None


@pytest.mark.parametrize(
    ("source", "is_bound"),
    [
        ('std::string table() { return std::string(__FILE__) + ".table"; }', True),
        ("auto here = std::source_location::current();", True),
        ("#define PROFILE 1  // my __FILES__", False),
    ],
)
def test_a_source_that_may_have_told_its_own_path_is_of_one_place(cache, build, tmp_path, source, is_bound):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "kernel.cu").write_text(source)
    cache.store("key", build, {str(one / "kernel.cu"): sha256_of(one / "kernel.cu")}, one)
    assert cache.lookup("key", one) is not None
    assert (cache.lookup("key", other) is None) == is_bound


def test_a_build_of_what_is_installed_is_of_every_place(cache, build, tmp_path, monkeypatch):
    monkeypatch.setattr("harness.build.cache.sys.prefix", str(tmp_path / "venv"))
    header = tmp_path / "venv" / "cutlass.h"
    header.parent.mkdir()
    header.write_text("installed")
    cache.store("key", build, {str(header): sha256_of(header)}, tmp_path / "one")
    assert cache.lookup("key", tmp_path / "moved") is not None


def test_a_file_beside_the_candidate_is_found_where_the_candidate_now_lies(cache, build, tmp_path):
    for name in ("one", "moved"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tiles.py").write_text("same")
    helper = tmp_path / "one" / "tiles.py"
    cache.store("key", build, {str(helper): sha256_of(helper)}, tmp_path / "one")
    helper.unlink()
    assert cache.lookup("key", tmp_path / "moved") is not None
    (tmp_path / "moved" / "tiles.py").write_text("other")
    assert cache.lookup("key", tmp_path / "moved") is None


def test_touching_a_candidate_changes_nothing(cache, candidate):
    before = cache.key(candidate, TOOLCHAIN)
    os.utime(candidate.path, (1, 1))
    assert cache.key(read_candidate(candidate.path), TOOLCHAIN) == before


def test_the_key_changes_with_the_headers_that_are_asked_for(cache, candidate, monkeypatch):
    before = cache.key(candidate, TOOLCHAIN)
    monkeypatch.setenv("KERNEL_REFEREE_STOCK_HEADERS", "1")
    assert cache.key(candidate, TOOLCHAIN) != before


def test_a_second_holder_of_the_lock_goes_on_after_its_time(cache):
    entered = []
    with cache.lock("key", 1), cache.lock("key", 0.05):
        entered.append("second")
    assert entered == ["second"]


def test_nothing_is_left_in_staging(cache, build):
    with cache.staging() as folder:
        (folder / "file").write_text("x")
        cache.store("key", build)
    assert not list((cache.root / "staging").iterdir())


def test_a_link_that_leads_elsewhere_is_part_of_the_key(cache, tmp_path):
    candidate = in_folder(tmp_path / "linked", LOADS, {"x.cu": "first"})
    for name in ("v1", "v2"):
        (tmp_path / "linked" / name).mkdir()
        (tmp_path / "linked" / name / "k.h").write_text(name)
    link = tmp_path / "linked" / "inc"
    link.symlink_to("v1")
    before = cache.key(candidate, TOOLCHAIN)
    link.unlink()
    link.symlink_to("v2")
    assert cache.key(candidate, TOOLCHAIN) != before


@pytest.mark.parametrize(("more", "names"), [
    ("", {"k.h", "x.cuh", "made.ptx"}),
    ("import subprocess\n", {"k.h", "x.cuh", "made.ptx", "x.cu", "y.cpp"}),
])
def test_what_compilers_do_not_say_that_they_read_counts_in_any_case(tmp_path, more, names):
    files = {"k.h": "", "x.cuh": "", "made.ptx": "", "x.cu": "", "y.cpp": "", "notes.txt": ""}
    candidate = in_folder(tmp_path / "several", more + LOADS, files)
    assert {path.name for path in sources_untold(candidate)} == names


def test_a_candidate_of_one_file_has_no_other_sources(tmp_path, candidate):
    (tmp_path / "k.h").write_text("somebody else's")
    assert sources_untold(candidate) == []


def test_a_build_whose_files_changed_meanwhile_is_in_nobodys_way(cache, build, tmp_path):
    stored = [cache.store("key", build, {str(tmp_path / "k.h"): "saved meanwhile"}, tmp_path) for _ in range(2)]
    assert all(each.extensions[0].path.is_file() for each in stored)
    assert cache.lookup("key", tmp_path) is None


def test_who_gives_up_waits_for_no_lock(cache):
    entered = []
    with cache.lock("key", 1):
        began = time.monotonic()
        with cache.lock("key", 60, lambda: time.monotonic() - began > 0.3):
            entered.append(time.monotonic() - began)
    assert 0.2 < entered[0] < 10
