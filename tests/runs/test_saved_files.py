"""What counts as a candidate that was saved: new, changed, or with a changed file beside it that it names."""

from __future__ import annotations

import os

import pytest

from harness.runs.saved_files import SavedFiles

SOURCE = "class ModelNew:\n    pass\n"


@pytest.fixture
def saved(tmp_path):
    return SavedFiles([tmp_path], lambda: sorted(tmp_path.glob("*.py")))


def names(saved):
    """The changed ones once nothing moves any more."""
    first = [candidate.name for candidate in saved.changed()]
    return first + [candidate.name for candidate in saved.changed()]


def write(path, text, at_s=None):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    if at_s is not None:
        os.utime(path, (at_s, at_s))


def test_all_are_new_at_first_and_none_of_them_after_that(saved, tmp_path):
    write(tmp_path / "a.py", SOURCE)
    write(tmp_path / "b.py", SOURCE)
    assert names(saved) == ["a", "b"]
    assert names(saved) == []
    assert saved.candidates == {"a", "b"}


def test_a_file_counts_once_it_has_stayed_as_it_is_for_a_look(saved, tmp_path):
    path = tmp_path / "a.py"
    for length in range(3):
        write(path, SOURCE + "#" * length, at_s=1000 + length)
        assert saved.changed() == []
    assert [candidate.source for candidate in saved.changed()] == [SOURCE + "##"]


def test_however_often_it_is_looked_at_a_file_has_to_stay_as_it_is_for_a_while(tmp_path, monkeypatch):
    now_s = 100.0
    monkeypatch.setattr("harness.runs.saved_files.time.monotonic", lambda: now_s)
    saved = SavedFiles([tmp_path], lambda: sorted(tmp_path.glob("*.py")), quiet_s=0.25)
    write(tmp_path / "a.py", SOURCE)
    assert [saved.changed(), saved.changed(), saved.is_moving] == [[], [], True]
    now_s += 0.25
    assert [each.name for each in saved.changed()] == ["a"] and not saved.is_moving


def test_what_is_forgotten_is_returned_again_although_it_was_not_saved(saved, tmp_path):
    write(tmp_path / "a.py", SOURCE)
    write(tmp_path / "b.py", SOURCE)
    names(saved)
    saved.forget("b")
    assert names(saved) == ["b"]


def test_only_the_one_that_was_saved_is_returned_and_with_its_new_source(saved, tmp_path):
    write(tmp_path / "a.py", SOURCE, at_s=1000)
    write(tmp_path / "b.py", SOURCE, at_s=1000)
    names(saved)
    write(tmp_path / "b.py", SOURCE + "x = 1\n", at_s=2000)
    saved.changed()
    (candidate,) = saved.changed()
    assert (candidate.name, candidate.source) == ("b", SOURCE + "x = 1\n")


def test_a_file_that_was_touched_and_not_changed_is_left_alone(saved, tmp_path):
    write(tmp_path / "a.py", SOURCE, at_s=1000)
    names(saved)
    os.utime(tmp_path / "a.py", (2000, 2000))
    assert names(saved) == []


def test_a_file_beside_it_counts_for_the_candidates_that_name_it(saved, tmp_path):
    write(tmp_path / "a.py", SOURCE + "files = ['kernels/tile.cuh']\n", at_s=1000)
    write(tmp_path / "b.py", SOURCE, at_s=1000)
    write(tmp_path / "kernels" / "tile.cuh", "// one", at_s=1000)
    assert names(saved) == ["a", "b"]
    write(tmp_path / "kernels" / "tile.cuh", "// two", at_s=2000)
    assert names(saved) == ["a"]
    write(tmp_path / "notes.txt", "nobody names this", at_s=2000)
    assert names(saved) == []


@pytest.mark.parametrize(("path", "imports"), [
    ("_shared.py", "import _shared"), ("_shared.py", "from _shared import CUDA"),
    ("parts/tile.py", "from parts import (\n    tile,\n)"), ("_parts/tile.py", "import torch, _parts.tile as tile"),
    ("parts/__init__.py", "import parts"),
])
def test_a_module_beside_it_counts_for_the_candidates_that_import_it(saved, tmp_path, path, imports):
    write(tmp_path / "a.py", f"{imports}\n{SOURCE}", at_s=1000)
    write(tmp_path / "b.py", f'"""\nfrom tile, parts and _shared nothing.\n"""\n{SOURCE}', at_s=1000)
    write(tmp_path / path, "CUDA = 'one'", at_s=1000)
    names(saved)
    write(tmp_path / path, "CUDA = 'two'", at_s=2000)
    assert [name for name in names(saved) if name in "ab"] == ["a"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_no_file_to_look_at(saved, tmp_path):
    write(tmp_path / "a.py", SOURCE + "log = 'pipe.txt'\n", at_s=1000)
    os.mkfifo(tmp_path / "pipe.txt")
    assert names(saved) == ["a"]


def test_what_a_file_beside_it_names_counts_too(saved, tmp_path):
    write(tmp_path / "a.py", SOURCE + "files = ['kernels/product.cu']\n", at_s=1000)
    write(tmp_path / "kernels" / "product.cu", '#include "tile.cuh"\n', at_s=1000)
    write(tmp_path / "kernels" / "tile.cuh", '#include "product.cu"  // each names the other', at_s=1000)
    assert names(saved) == ["a"]
    write(tmp_path / "kernels" / "tile.cuh", "// two", at_s=2000)
    assert names(saved) == ["a"]
    write(tmp_path / "kernels" / "product.cu", "// no longer", at_s=2000)
    assert names(saved) == ["a"]
    write(tmp_path / "kernels" / "tile.cuh", "// three", at_s=3000)
    assert names(saved) == []


def test_a_mistake_is_returned_with_its_sentence_and_so_is_its_mending(saved, tmp_path):
    write(tmp_path / "a.py", "class ModelNew(:\n", at_s=1000)
    saved.changed()
    (candidate,) = saved.changed()
    assert "a.py:1" in candidate.fault
    write(tmp_path / "a.py", SOURCE, at_s=2000)
    saved.changed()
    (candidate,) = saved.changed()
    assert candidate.fault is None


def test_a_candidate_that_is_gone_is_forgotten_and_new_when_it_is_back(saved, tmp_path):
    write(tmp_path / "a.py", SOURCE, at_s=1000)
    names(saved)
    (tmp_path / "a.py").unlink()
    assert names(saved) == []
    assert saved.candidates == set()
    write(tmp_path / "a.py", SOURCE, at_s=3000)
    assert names(saved) == ["a"]


@pytest.mark.parametrize(("pattern", "is_read"), [
    ("*.cu", True), ("kernels/*.cu", True), ("**/tile*.cu*", True), ("*.cuh", False), ("x * y.cu", False),
])
def test_a_file_that_a_pattern_names_is_one_that_the_candidate_reads(saved, tmp_path, pattern, is_read):
    write(tmp_path / "a.py", f"{SOURCE}SOURCES = sorted(HERE.glob('{pattern}'))\n")
    write(tmp_path / "kernels" / "tile_1.cu", "one")
    names(saved)
    write(tmp_path / "kernels" / "tile_1.cu", "another")
    assert names(saved) == (["a"] if is_read else [])
