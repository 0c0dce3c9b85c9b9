"""Why nobody knows whether an extension is what its sources say."""

from __future__ import annotations

import os
import random
import sys

import pytest

from harness.build.taken_in import NOTHING_TOLD, TakenIn, why_unproven

CODE = ", ".join(map(str, random.Random(4).randbytes(600)))
TAKEN = TakenIn(frozenset(), (), ())


@pytest.fixture
def own(tmp_path):
    """A header of the candidate's, and one with a table of bytes."""
    (tmp_path / "own.h").write_text("int twice(int x) { return 2 * x; }\n")
    (tmp_path / "table.h").write_text(f"static const unsigned char code[] = {{{CODE}}};\n")
    return tmp_path


def test_what_was_compiled_from_the_text_alone_is_proven(own):
    header = str(own / "own.h")
    assert why_unproven(TAKEN, [header, "/usr/include/stdio.h"], [header], "-O3\n-DTILE=32", own / "unsettled") == ""


@pytest.mark.parametrize(("taken", "said"), [
    (NOTHING_TOLD, "ninja did not tell"),
    (TakenIn(frozenset(), (), ("ld",)), "ld did not tell"),
    (TakenIn(frozenset(), ("/usr/lib/libopenblas.a",), ()), "not compiled from its sources: /usr/lib/libopenblas.a"),
], ids=["no list of headers", "a silent linker", "an archive"])
def test_what_the_tools_took_in_or_did_not_tell_is_named(taken, said):
    assert said in why_unproven(taken, [], [], "", None)


def test_a_header_that_carries_code_is_named_and_so_is_a_flag(own):
    table = str(own / "table.h")
    assert why_unproven(TAKEN, [table], [table], "", None).endswith("numbers: table.h")
    assert why_unproven(TAKEN, [table], [], "", None) == "", "the toolchain's own may have tables"
    assert why_unproven(TAKEN, [], [], f"-DCODE={CODE}", None).endswith("numbers: a flag")
    assert why_unproven(TAKEN, [], [str(own / "gone.h")], "", None).endswith("numbers: gone.h")


@pytest.mark.parametrize("path", [
    "{0}/x.h", "{0}/sub/../x.h", "/usr/include/../..{0}/x.h", "{0}/linked/x.h", "{0}/../unsettled/x.h", "/proc/self/fd/77/x.h",
    "{0}/../leads/x.h", "{0}/../leads/linked/x.h", "{0}/../above/unsettled/linked/x.h",
], ids=["plain", "with dots", "from elsewhere", "through a link", "through it", "that nobody can follow", "by another name",
        "by another name through a link", "by another name of what it lies in"])
def test_what_the_candidate_may_write_again_is_named(own, path):
    unsettled = own / "unsettled"
    unsettled.mkdir()
    (unsettled / "linked").symlink_to(own)
    (own / "leads").symlink_to(unsettled)
    (own / "above").symlink_to(own)
    assert why_unproven(TAKEN, [path.format(unsettled)], [], "", unsettled).endswith("imported: x.h")
    assert why_unproven(TakenIn(frozenset([path.format(unsettled)]), (), ()), [], [], "", unsettled).endswith("x.h")


@pytest.mark.parametrize("content", [b"int twice;\0", "int twice;".encode("utf-16")], ids=["compiled before", "two bytes a letter"])
def test_what_is_no_text_is_looked_at_as_code(own, content):
    (own / "own.h").write_bytes(content)
    assert why_unproven(TAKEN, [], [str(own / "own.h")], "", None).endswith("numbers: own.h")


def test_a_library_that_a_compiler_read_was_embedded_whoever_installed_it(own):
    assert why_unproven(TAKEN, [sys.executable], [], "", None).endswith(f"no text: {os.path.basename(sys.executable)}")
