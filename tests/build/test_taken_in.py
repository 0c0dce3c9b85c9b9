"""What assembler and linker say that they take in."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.build import taken_in

pytestmark = [pytest.mark.processes, pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")]

HONEST = """
#include <atomic>
#include <cstdio>
#include <vector>
static std::atomic<int> count;
extern "C" int work(int times) {
  std::vector<int> made(times, 2);
#pragma omp parallel for
  for (int i = 0; i < times; ++i) { asm volatile("pause"); count += made[i]; }
  std::puts("worked");
  return count;
}
"""
BESIDE = 'extern "C" int beside() { return 7; }'
CALLS_IT = 'extern "C" int beside(); extern "C" int work() { return beside(); }'


@pytest.fixture
def built(tmp_path, monkeypatch):
    """`built(SOURCE, FLAG…)`: what the tools took in as g++ made a library of it, beside files that a candidate may bring."""
    monkeypatch.setenv("COMPILER_PATH", "")
    place, own = tmp_path / "place", tmp_path / "own"
    place.mkdir()
    own.mkdir()
    (own / "code.bin").write_bytes(bytes(range(64)))
    (own / "beside.cpp").write_text(BESIDE)
    subprocess.run(["g++", "-fPIC", "-c", "beside.cpp"], cwd=own, check=True)
    subprocess.run(["ar", "rcs", "libgcc_eh.a", "beside.o"], cwd=own, check=True)
    subprocess.run(["g++", "-shared", "-o", "libbeside.so", "beside.o"], cwd=own, check=True)
    (own / "script.ld").write_text(f"INPUT({own}/beside.o)")
    (own / "bytes.ld").write_text("SECTIONS { .made : { BYTE(0x90) } } INSERT AFTER .text;")
    (own / "filled.ld").write_text("SECTIONS { .made : { . = . + 64; } =0x90c3 } INSERT AFTER .text;")
    (own / "exported.map").write_text("/* of (all) */ MADE_1 { global: work; be*; local: *; };")
    (own / "code.h").write_bytes(bytes(range(64)))
    watch = taken_in.ToolWatch(tmp_path / "told", own, None)

    def build(source, *flags):
        (place / "main.cpp").write_text(source.replace("OWN", str(own)))
        words = [flag.replace("OWN", str(own)) for flag in flags]
        subprocess.run(
            ["g++", "-fPIC", "-MD", "-MF", "main.d", "-c", "main.cpp", *(word for word in words if word[:2] in ("-f", "-g", "-W"))],
            cwd=place, check=True,
        )
        subprocess.run(["g++", "-shared", "-o", "made.so", "main.o", *words], cwd=place, check=True)
        taken = watch.taken_in(place, ["main.cpp"])
        assert taken.silent == ()
        return {Path(path).name for path in taken.files}, [Path(path).name for path in taken.foreign]

    return build


@pytest.mark.parametrize("flags", [(), ("-g",), ("-fopenmp",), ("-flto",), ("-lpthread", "-ldl", "-lm", "-lrt")], ids=" ".join)
def test_what_compilers_link_into_any_library_is_nobodys_code(built, flags):
    assert built(HONEST, *flags) == (set(), [])


@pytest.mark.parametrize("directive", [
    'asm(".incbin \\"OWN/code.bin\\"");',
    'asm(".inc" "bin \\"OWN/code.bin\\", 8, 16");',
    'asm(".macro take first second\\n .\\\\first\\\\second \\"OWN/code.bin\\"\\n .endm\\n take inc bin");',
    '__attribute__((used)) static void f() { asm(".pushsection .text.x\\n.incbin \\"OWN/code.bin\\"\\n.popsection"); }',
], ids=["plain", "in pieces", "by a macro", "in a function"])
@pytest.mark.parametrize("flags", [(), ("-flto",), ("-Wa,--MD,elsewhere.d",)], ids=["", "at link time", "told elsewhere"])
def test_what_is_copied_in_is_told_however_it_is_spelled(built, directive, flags):
    assert built(directive + HONEST, *flags) == ({"code.bin"}, ["code.bin"])


@pytest.mark.parametrize("name", ["a$b.bin", "a b.bin"])
def test_a_name_is_told_whatever_is_in_it(built, tmp_path, name):
    shutil.copy(tmp_path / "own" / "code.bin", tmp_path / "own" / name)
    assert built(f'asm(".incbin \\"OWN/{name}\\"");')[1] == [name]
    shutil.copy(tmp_path / "own" / "beside.o", tmp_path / "own" / f"{name}.o")
    assert built(CALLS_IT, f"OWN/{name}.o") == ({f"{name}.o"}, [f"{name}.o"])


def test_a_name_that_leads_somewhere_for_the_tool_alone_is_foreign_too(built):
    assert len(built('asm(".incbin \\"/proc/self/cwd/../own/code.bin\\"");')[1]) == 1


def test_the_next_build_is_told_apart(built):
    assert built('asm(".incbin \\"OWN/code.bin\\"");')[1] == ["code.bin"]
    assert built(HONEST) == (set(), [])


@pytest.mark.parametrize(("flags", "foreign"), [
    (("OWN/beside.o",), ["beside.o"]),
    (("-LOWN", "-l:libgcc_eh.a"), ["libgcc_eh.a"]),
    (("OWN/script.ld",), ["beside.o", "script.ld"]),
    (("-Wl,-T,OWN/bytes.ld", "OWN/beside.o"), ["beside.o", "bytes.ld"]),
    (("-Wl,-T,OWN/filled.ld", "OWN/beside.o"), ["beside.o", "filled.ld"]),
    (("-LOWN", "-lbeside"), []),
    (("-LOWN", "-lbeside", "-Wl,--version-script=OWN/exported.map"), []),
], ids=["an object", "an archive that is called like a compiler's", "a script of the linker's", "bytes in a script",
        "a script that fills", "a library of its own", "a list of what is exported"])
def test_what_is_linked_is_foreign_but_for_libraries_that_stay_their_own(built, flags, foreign):
    files, found = built(CALLS_IT, *flags)
    assert found == foreign and files >= set(foreign)


def test_quotes_hide_no_part_of_a_script():
    assert taken_in._without_comments(b'INPUT("/*") INPUT("x.o") INPUT("*/")').count(b"INPUT") == 3


def test_a_header_that_is_copied_in_as_bytes_is_foreign_though_it_is_included(built):
    source = '#if 0\n#endif\n#if __has_include("OWN/code.h")\nasm(".incbin \\"OWN/code.h\\"");\n#endif\n'
    assert built(source)[1] == ["code.h"]


def test_a_tool_that_tells_nothing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPILER_PATH", "")
    watch = taken_in.ToolWatch(tmp_path / "told", tmp_path / "own", None)
    assert watch.taken_in(tmp_path, []).silent == ("as", "ld")
    monkeypatch.setenv("COMPILER_PATH", "")  # as for a compiler that has its own tools
    (tmp_path / "main.cpp").write_text(BESIDE)
    subprocess.run(["g++", "-fPIC", "-shared", "-o", "made.so", "main.cpp"], cwd=tmp_path, check=True)
    assert watch.taken_in(tmp_path, []).silent == ("as", "ld")


