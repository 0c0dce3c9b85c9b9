"""What the flags of a call lead to."""

from __future__ import annotations

import pytest

from harness.build.flags import files_named, header_folders


@pytest.fixture
def place(tmp_path):
    for name in ("flags.txt", "own library.a", "exported.map", "table.bin", "more/libown.so", "more/libother.a", "more/exact.a"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"extra_cflags": ["-O3", "@flags.txt"]}, ["flags.txt"]),
        ({"extra_cuda_cflags": ["--options-file", "flags.txt"]}, ["flags.txt"]),
        ({"extra_cuda_cflags": ["-optf=flags.txt"]}, ["flags.txt"]),
        ({"extra_cflags": ["-O3 -include flags.txt"]}, ["flags.txt"]),
        ({"extra_ldflags": ["'own library.a'"]}, ["own library.a"]),
        ({"extra_ldflags": ["-Wl,--version-script=exported.map"]}, ["exported.map"]),
        ({"extra_ldflags": ["-Lmore", "-lown"]}, []),
        ({"extra_cflags": ["-Imore", "-DNAME=none", "it's", "a\0b"]}, []),
        ({}, []),
    ],
)
def test_files_that_flags_name(place, arguments, names):
    assert files_named(arguments, place, place) == {str(place / name) for name in names}


def test_include_paths_are_those_of_arguments_and_of_flags(tmp_path):
    found = header_folders({
        "extra_include_paths": ["/one"], "extra_cflags": ["-I/two", "-isystem", "/three"], "extra_cuda_cflags": ["-I", "/four"],
    })
    assert sorted(map(str, found)) == ["/four", "/one", "/three", "/two"]


def test_what_is_installed_is_no_file_of_the_candidates_and_neither_is_a_very_large_one(place, monkeypatch):
    arguments = {"extra_ldflags": ["more/libown.so", str(place / "own library.a").replace(" ", "\\ ")]}
    both = {str(place / "more/libown.so"), str(place / "own library.a")}
    assert files_named(arguments, place, place) == both
    monkeypatch.setattr("harness.build.installed_folders._SYSTEM", (str(place / "more"),))
    assert files_named(arguments, place, place) == {str(place / "own library.a")}
    assert files_named(arguments, place, place / "more" / "mine") == both, "the candidate's own folder is no such place"
    monkeypatch.setattr("harness.build.flags.LARGEST_BYTES", -1)
    assert files_named(arguments, place, place) == set()
