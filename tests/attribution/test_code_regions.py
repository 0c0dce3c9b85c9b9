"""Whose code the looks at a worker's cores met, and what that says of a kind."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from harness.attribution import code_regions
from harness.attribution.code_regions import CodeSeen, Look, Mapped, Window, code_seen, less_own
from harness.attribution.kernel_ownership import Provenance

PACKAGES = f"{sys.prefix}/lib/python3.11/site-packages"


def seen_at(file, own=("/cache/own.so",), *, is_writable=False):
    mapped = [Mapped(0, 7, 0x1000, 0x2000, file, is_writable=is_writable)]
    seen = code_seen([Look(50, 7, 0x1800)], mapped, [Window(0, 100, 1)], own)
    return next(iter(seen.of))


@pytest.mark.parametrize(("file", "owner"), [
    ("/cache/own.so", code_regions.OWN),
    ("/lib/x86_64-linux-gnu/libc.so.6", code_regions.ANYBODYS),
    ("/usr/lib/x86_64-linux-gnu/libm.so.6", code_regions.ANYBODYS),
    ("/usr/lib/x86_64-linux-gnu/libmvec.so.1", code_regions.ANYBODYS),
    ("/usr/lib/libc-2.31.so", code_regions.ANYBODYS),
    ("/usr/lib/ld-2.31.so", code_regions.ANYBODYS),
    ("/lib64/ld-linux-x86-64.so.2", code_regions.ANYBODYS),
    (f"{PACKAGES}/torch/lib/libgomp-24e2ab19.so.1", code_regions.ANYBODYS),
    ("[vdso]", code_regions.ANYBODYS),
    (f"{PACKAGES}/torch/lib/libtorch_cpu.so", code_regions.PYTORCHS),
    (f"{PACKAGES}/torch/lib/libc10.so", code_regions.PYTORCHS),
    (f"{PACKAGES}/torch/_C.cpython-311-x86_64-linux-gnu.so", code_regions.PYTORCHS),
    ("/usr/bin/python3.11", code_regions.PYTHONS),
    ("/usr/lib/libpython3.11.so.1.0", code_regions.PYTHONS),
    ("/usr/lib/python3.11/lib-dynload/math.cpython-311-x86_64-linux-gnu.so", code_regions.PYTHONS),
    (f"{PACKAGES}/numpy.libs/libscipy_openblas64_-8fb3d286.so", code_regions.LIBRARYS),
    (f"{PACKAGES}/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so", code_regions.LIBRARYS),
    ("/usr/lib/x86_64-linux-gnu/libcblas.so.3", code_regions.LIBRARYS),
    ("/usr/lib/x86_64-linux-gnu/libmkl_rt.so", code_regions.LIBRARYS),
    ("/tmp/libc.so.6", code_regions.UNKNOWN),
    ("/home/me/libgomp.so.1", code_regions.UNKNOWN),
    ("", code_regions.UNKNOWN),
    ("//anon", code_regions.UNKNOWN),
    ("/memfd:code (deleted)", code_regions.UNKNOWN),
])
def test_code_is_whose_the_file_is_that_it_came_from(file, owner):
    assert seen_at(file) == owner


def test_an_extension_whose_code_may_be_written_over_is_no_longer_what_was_built():
    assert seen_at("/cache/own.so", is_writable=True) == code_regions.UNKNOWN
    assert seen_at("/usr/lib/libm.so.6", is_writable=True) == code_regions.UNKNOWN


def test_looks_count_within_the_windows_alone_and_by_what_lay_there_then():
    mapped = [
        Mapped(0, 7, 0x1000, 0x2000, "/cache/own.so"), Mapped(150, 7, 0x1000, 0x2000, "/usr/lib/libother.so"),
        Mapped(0, 7, 0x5000, 0x6000, "/usr/lib/libm.so.6"),
    ]
    looks = [Look(at, 7, 0x1800) for at in (5, 10, 20, 25, 110, 200, 300)] + [Look(15, 7, 0x5500), Look(16, 7, 0x9000)]
    seen = code_seen(looks, mapped, [Window(10, 20, 5), Window(110, 120, 5), Window(190, 210, 10)], ["/cache/own.so"])
    assert seen.of == {code_regions.OWN: 3, code_regions.LIBRARYS: 1, code_regions.ANYBODYS: 1, code_regions.UNKNOWN: 1}
    assert seen.files == {"libother.so": 1, "code of no file": 1}
    assert (seen.count, seen.one_core) == (6, 6.0)


def test_a_process_that_was_forked_has_what_its_parent_had():
    mapped = [Mapped(0, 7, 0x1000, 0x2000, "/usr/lib/libother.so"), Mapped(20, 8, 0x8000, 0x9000, "/usr/lib/libm.so.6")]
    seen = code_seen([Look(30, 8, 0x1800), Look(31, 9, 0x1800)], mapped, [Window(0, 99, 1)], [])
    assert seen.of == {code_regions.LIBRARYS: 2}


def test_what_a_process_that_was_forked_runs_is_never_known_to_be_its_own():
    """It can move a library's code to where the extension's was, and end before anybody looks."""
    mapped = [Mapped(0, 7, 0x1000, 0x2000, "/cache/own.so"), Mapped(20, 8, 0x8000, 0x9000, "/cache/own.so")]
    looks = [Look(30, 7, 0x1800), Look(30, 8, 0x1800), Look(31, 9, 0x1800), Look(32, 8, 0x8800)]
    seen = code_seen(looks, mapped, [Window(0, 99, 1)], ["/cache/own.so"])
    assert seen.of == {code_regions.OWN: 1, code_regions.UNKNOWN: 3}
    assert seen.files == {"what a process of its own had in the place of own.so": 3}


def counted(own=0, one_core=None, **of):
    owners = {"library": code_regions.LIBRARYS, "pytorch": code_regions.PYTORCHS, "python": code_regions.PYTHONS,
              "nobody": code_regions.ANYBODYS, "unknown": code_regions.UNKNOWN}
    met = Counter({code_regions.OWN: own, **{owners[name]: count for name, count in of.items()}})
    return CodeSeen(met, Counter(x=1), one_core if one_core is not None else sum(met.values()))


CUSTOM = Provenance("custom", 1.0)


@pytest.mark.parametrize(("seen", "call_us", "kind"), [
    (counted(100), 1e3, "custom"),
    (counted(5, nobody=95), 1e3, "custom"),
    (counted(0, nobody=100), 1e3, "custom"),
    (counted(96, library=4), 1e4, "custom"),  # what four of a hundred may be by chance
    (counted(60, library=40), 1e4, "mixed"),
    (counted(0, library=100), 1e4, "library"),
    (counted(0, library=25), 1e4, "library"),
    (counted(10, library=10, nobody=80), 1e4, "custom"),
    (counted(100, library=100, nobody=800), 1e4, "mixed"),
    (counted(3000, library=100, one_core=100), 1e4, "library"),  # thirty threads that do nothing beside
    (counted(3000, library=3, one_core=100), 1e4, "custom"),
    (counted(50, unknown=50), 1e4, "unknown"),
    (counted(0, pytorch=100), 1e4, "library"),
    (counted(20, pytorch=60, python=20), 100.0, "custom"),  # around a call of microseconds is PyTorch's binding
    (counted(20, pytorch=60, python=20), 1e4, "mixed"),
    (counted(85, pytorch=10, python=5), 1e4, "custom"),
])
def test_a_kind_is_what_the_looks_bear_out(seen, call_us, kind):
    assert less_own(CUSTOM, seen, None, call_us).kind == kind


def test_zeros_that_pytorch_fills_are_nobodys_up_to_half_of_a_call():
    filled = Provenance("custom", 1.0, neutral_us=3000.0)
    assert less_own(filled, counted(70, pytorch=30), None, 1e4).kind == "custom"
    assert less_own(CUSTOM, counted(70, pytorch=30), None, 1e4).kind == "mixed"
    claimed = Provenance("custom", 1.0, neutral_us=9500.0)
    assert less_own(claimed, counted(5, pytorch=95), None, 1e4).kind == "library"


def test_what_pytorch_is_said_to_fill_is_no_more_than_twice_its_outputs():
    claimed = Provenance("custom", 1.0, neutral_us=5000.0)
    assert less_own(claimed, counted(60, pytorch=40), None, 1e4).kind == "custom"
    assert less_own(claimed, counted(60, pytorch=40), None, 1e4, fill_us=200.0).kind == "mixed"
    assert less_own(claimed, counted(85, pytorch=15), None, 1e4, fill_us=200.0).kind == "custom"


@pytest.mark.parametrize(("lost", "kind"), [(0, "custom"), (5, "custom"), (6, "unknown"), (9000, "unknown")])
def test_looks_that_had_no_room_may_have_met_anything(lost, kind):
    found = less_own(CUSTOM, replace(counted(100), lost=lost), None, 1e4)
    assert found.kind == kind
    assert kind == "custom" or f"{lost} had no room beside 100" in found.notes[-1]


def test_what_no_look_can_have_met_is_not_known():
    found = less_own(CUSTOM, replace(counted(100), unmet=("a process was met by none",)), None, 1e4)
    assert (found.kind, found.own_share, found.notes) == ("unknown", None, ("a process was met by none",))


def test_the_row_says_what_was_met_and_where():
    found = less_own(CUSTOM, CodeSeen(Counter({code_regions.LIBRARYS: 99, code_regions.OWN: 1}), Counter({"libblas.so": 99}), 100.0), None, 1e4)
    assert found.notes == ("of 100 looks at what its cores ran 99 met code that is not its extension's: libblas.so (99)",)
    assert found.own_share == 1 / 100


@pytest.mark.parametrize(("seen", "fault", "why"), [
    (None, "the system lets no one look", "the system lets no one look"),
    (counted(19), None, "there were 19 looks, and it takes 20"),
    (None, None, "there were 0 looks, and it takes 20"),
])
def test_where_nobody_could_look_the_kind_stays_and_the_row_says_so(seen, fault, why):
    found = less_own(CUSTOM, seen, fault, 1e4)
    assert (found.kind, found.notes) == ("custom", (f"whose code its cores ran was not looked at: {why}",))


@pytest.mark.parametrize("kind", ["library", "unknown"])
def test_what_is_not_its_own_is_not_made_its_own_by_looks(kind):
    found = Provenance(kind, None)
    assert less_own(found, counted(100), None, 1e4) is found


def test_the_file_of_an_extension_counts_by_whatever_path_it_is_named(tmp_path):
    library, link = tmp_path / "own.so", tmp_path / "link.so"
    library.touch()
    link.symlink_to(library)
    assert seen_at(str(Path(library).resolve()), own=[str(link)]) == code_regions.OWN
