"""Names of kernels, read from what a build left behind."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from harness.provenance import symbols
from harness.provenance.symbols import demangled, kernel_names


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z5tiledPKfS0_Pfi", "tiled(float const*, float const*, float*, int)"),
        ("_Z5tiledILi32EEvPKfPf", "void tiled<32>(float const*, float*)"),
        ("_ZN8launches4tileEv", "launches::tile()"),
        ("tril_kernel", "tril_kernel"),
        ("_Znonsense", "_Znonsense"),
        ("", ""),
    ],
)
def test_a_mangled_symbol_gets_its_cpp_name_and_anything_else_stays(symbol, name):
    if symbols._demangler()[0] is None:
        pytest.skip("there is no demangler here")
    assert demangled(symbol) == name


def test_without_a_demangler_symbols_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(symbols, "_demangler", lambda: (None, None))
    assert demangled("_Z5tiledPKfS0_Pfi") == "_Z5tiledPKfS0_Pfi"


def test_triton_kernels_are_found_in_their_cache(tmp_path):
    (tmp_path / "HASH").mkdir()
    (tmp_path / "HASH" / "tril_kernel.json").write_text(json.dumps({"name": "tril_kernel", "num_warps": 8}))
    assert kernel_names([], tmp_path) == {"tril_kernel"}


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"name": 3}', "{}", "\x00\xff"])
def test_a_cache_file_that_says_nothing_useful_is_passed_over(tmp_path, text):
    (tmp_path / "HASH").mkdir()
    (tmp_path / "HASH" / "x.json").write_bytes(text.encode("latin-1"))
    assert kernel_names([], tmp_path) == set()


def test_no_cache_and_no_extension_mean_no_names(tmp_path):
    assert kernel_names([], None) == kernel_names([], tmp_path / "missing") == set()


def test_an_extension_that_is_gone_has_no_names(tmp_path):
    assert kernel_names([tmp_path / "gone.so"], None) == set()


def test_without_cuobjdump_names_are_taken_from_the_strings_of_the_extension(tmp_path, monkeypatch):
    monkeypatch.setattr(symbols.shutil, "which", lambda *_, **__: None)
    path = tmp_path / "extension.so"
    path.write_bytes(b"\x7fELF\x00\x01_Z5tiledPKfS0_Pfi\x00junk\xfftril_kernel\x00")
    names = kernel_names([path], None)
    assert "tril_kernel" in names
    if symbols._demangler()[0] is not None:
        assert "tiled(float const*, float const*, float*, int)" in names


def test_cuobjdumps_list_is_read_for_kernels_only(tmp_path, monkeypatch):
    listing = (
        "STT_FUNC         STB_GLOBAL STO_ENTRY      _Z5tiledPKfS0_Pfi\n"
        "STT_FUNC         STB_LOCAL                 _Z6helperv\n"
        "STT_OBJECT       STB_GLOBAL                table\n"
    )
    monkeypatch.setattr(symbols.shutil, "which", lambda *_, **__: "/usr/bin/cuobjdump")
    monkeypatch.setattr(
        symbols.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, listing, "")
    )
    assert {name.split("(")[0] for name in kernel_names([tmp_path / "x.so"], None)} <= {"tiled", "_Z5tiledPKfS0_Pfi"}
    assert len(kernel_names([tmp_path / "x.so"], None)) == 1


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
def test_names_come_out_of_a_real_shared_object(tmp_path, monkeypatch):
    monkeypatch.setattr(symbols.shutil, "which", lambda *_, **__: None)
    source, built = tmp_path / "x.cpp", tmp_path / "x.so"
    source.write_text('extern "C" int tril_kernel_entry(int x) { return x; }\n')
    subprocess.run(["g++", "-shared", "-fPIC", "-o", built, source], check=True, timeout=60)
    assert "tril_kernel_entry" in kernel_names([built], None)
