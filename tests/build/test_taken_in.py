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

    def build(source, *flags, silent=()):
        (place / "main.cpp").write_text(source.replace("OWN", str(own)))
        words = [flag.replace("OWN", str(own)) for flag in flags]
        with watch.watching():
            compiler = os.environ.get("CXX") or "g++"
            of_compiler = [word for word in words if word[:2] in ("-f", "-g", "-W", "-p")]
            of_compiler += [part for word in words if word.startswith("-include=") for part in word.split("=")]
            compiling = [compiler, "-fPIC", "-MMD", "-MF", "main.d", *of_compiler, "-c", "main.cpp", "-o", "main.o"]
            subprocess.run(compiling, cwd=place, check=True)
            subprocess.run([compiler, "-shared", "-o", "made.so", "main.o", *words], cwd=place, check=True)
        taken = watch.taken_in(place, ["main.cpp"])
        assert taken.silent == silent
        return {Path(path).name for path in taken.files}, [Path(path).name for path in taken.foreign]

    return build


@pytest.mark.parametrize("flags", [(), ("-g",), ("-fopenmp",), ("-flto",), ("-pipe",), ("-lpthread", "-ldl", "-lm", "-lrt")], ids=" ".join)
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


@pytest.mark.parametrize("name", ["a\tb", "a;b", "a:b", "a^b", "a\x0bb"], ids=["tab", "semicolon", "colon", "caret", "page"])
def test_a_header_whose_name_a_rule_cannot_tell_proves_nothing(built, tmp_path, name):
    (tmp_path / "own" / name).write_text("static const int given = 1;\n")
    assert built(f'#include "OWN/{name}"\n' + HONEST, silent=("g++",)) == (set(), [])


def test_neither_does_a_file_that_is_copied_in_whose_name_has_two_lines(built, tmp_path):
    shutil.copy(tmp_path / "own" / "code.bin", tmp_path / "own" / "a\nb")
    assert built('asm(".incbin \\"OWN/a\\\\nb\\"");' + HONEST, silent=("as",)) == (set(), ["a"])


def test_a_compiler_that_fails_says_nothing_of_the_watch(built, capfd):
    with pytest.raises(subprocess.CalledProcessError):
        built("int work() { return missing; }")
    said = capfd.readouterr().err
    assert "missing" in said and "cp:" not in said


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


@pytest.mark.parametrize(("script", "is_list"), [
    (b"{ global: work; local: *; };", True),
    (b'MADE_1 { global: extern "C++" { "work(int)"; *other*; }; /* (all) */ local: *; };\nMADE_2 { more; } MADE_1;\n', True),
    (b'INPUT("/*") INPUT("beside.o") INPUT("*/")', False),
    (b"/* a */ SECTIONS { .made : { BYTE(0x90) } } /* b */ { x; };", False),
    (b"SECTIONS { .made : { . = . + 64; } =0x90c3 };", False),
    (b"\x64\x86 { global: work; };", False),
    (b"", False),
], ids=["plain", "in C++", "in quotes", "between comments", "filling", "an object of another system", "nothing"])
def test_a_list_of_names_is_told_from_other_scripts(script, is_list):
    assert bool(taken_in._LIST_OF_NAMES.fullmatch(script)) == is_list


def test_no_header_that_was_compiled_before_is_taken(built, tmp_path):
    header = tmp_path / "own" / "pch.h"
    header.write_text("static const int given = 1;\n")
    subprocess.run(["g++", "-fPIC", "-x", "c++-header", header.name], cwd=header.parent, check=True)
    header.write_text("")  # is what would be looked at
    with pytest.raises(subprocess.CalledProcessError):
        built('extern "C" int work() { return given; }', f"-include={header}")


def test_a_source_that_is_compiled_while_it_is_linked_is_noticed(built):
    assert built(CALLS_IT, "OWN/beside.cpp", silent=("as",))[1] == []


def test_a_header_that_is_copied_in_as_bytes_is_foreign_though_it_is_included(built):
    source = '#if 0\n#endif\n#if __has_include("OWN/code.h")\nasm(".incbin \\"OWN/code.h\\"");\n#endif\n'
    assert built(source)[1] == ["code.h"]


def test_an_archive_that_is_installed_is_foreign_unless_it_is_a_compilers_own(built):
    assert built(HONEST, "-static-libstdc++") == (set(), [])
    assert built(HONEST, place_of("libasan.a")) == (set(), ["libasan.a"])


def place_of(name):
    return subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()


def as_compiler(tmp_path, monkeypatch, commands):
    """Have `g++` be this script of a shell's, in which GXX is the real one."""
    compiler = tmp_path / "bin" / "g++"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\n" + commands.replace("GXX", shutil.which("g++")))
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))


@pytest.fixture
def other_place(tmp_path, monkeypatch):
    """A compiler whose tools, start files and C++ library lie where nobody installs any, as package managers may have it."""
    place = tmp_path / "store"
    place.mkdir()
    for name in ("crti.o", "libstdc++.a"):
        shutil.copy(place_of(name), place / name)
    for name in ("as", "ld"):
        (place / name).symlink_to(shutil.which(name))
    as_compiler(tmp_path, monkeypatch, f'exec GXX -B{place}/ -L{place} -static-libstdc++ "$@"\n')


def test_what_a_compiler_links_into_any_library_is_its_own_wherever_it_lies(other_place, built):
    assert built(HONEST) == ({"crti.o", "libstdc++.a"}, [])
    assert built('asm(".incbin \\"OWN/code.bin\\"");' + HONEST)[1] == ["code.bin"]


@pytest.fixture
def deaf_compiler(tmp_path, monkeypatch):
    """A compiler that knows no `-wrapper`, as Clang does not."""
    as_compiler(tmp_path, monkeypatch, '[ "$1" = -wrapper ] && exit 1\nexec GXX "$@"\n')


def test_tools_that_tell_nothing_are_named_and_the_build_goes(deaf_compiler, built):
    assert built(HONEST, silent=("as", "ld")) == (set(), [])


@pytest.fixture
def partly_deaf_compiler(tmp_path, monkeypatch):
    """A compiler that compiles with other tools than it links with."""
    as_compiler(tmp_path, monkeypatch, 'case " $* " in *" -c "*) [ "$1" = -wrapper ] && shift 2 ;; esac\nexec GXX "$@"\n')


def test_an_object_that_no_assembler_told_of_is_noticed(partly_deaf_compiler, built):
    assert built('asm(".incbin \\"OWN/code.bin\\"");' + HONEST, silent=("as",)) == (set(), [])


def test_nvccs_host_compiler_is_watched_too_and_the_environment_is_as_before(tmp_path, monkeypatch):
    for name in ("CC", "NVCC_CCBIN"):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    watch = taken_in.ToolWatch(tmp_path / "told", tmp_path / "own", "/usr/local/cuda/bin/nvcc")
    (tmp_path / "host.c").write_text('asm(".incbin \\"host.c\\"");')
    with watch.watching():
        assert before.items() < os.environ.items()
        subprocess.run([os.environ["NVCC_CCBIN"], "-c", "host.c"], cwd=tmp_path, check=True)
    assert dict(os.environ) == before
    assert watch.taken_in(tmp_path, []).silent == ("ld",)
    monkeypatch.setenv("NVCC_CCBIN", os.path.dirname(shutil.which("gcc")))
    with taken_in.ToolWatch(tmp_path / "there", tmp_path / "own", "/usr/local/cuda/bin/nvcc").watching():
        assert os.path.isfile(os.environ["NVCC_CCBIN"])
    monkeypatch.setenv("CC", "gcc")
    with taken_in.ToolWatch(tmp_path / "more", tmp_path / "own", "/usr/local/cuda/bin/nvcc").watching():
        assert os.path.isabs(os.environ["CC"]) and os.path.isdir(os.environ["NVCC_CCBIN"])
