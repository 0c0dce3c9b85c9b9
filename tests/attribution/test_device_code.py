"""The kernels in an extension's device code, however many of them a candidate puts there."""

from __future__ import annotations

import time

import pytest

from harness.attribution import device_code
from harness.attribution.device_code import device_symbols, strings_of

pytestmark = pytest.mark.processes

HIDDEN = "_ZN36_GLOBAL__N__424dd0fe_4_k_cu_99c9e5656hiddenEPf"
# One listing of cuobjdump 12.8, one of 13.5, of the same file.
LISTINGS = [
    """
Fatbin elf code:
================
arch = sm_90a
symbols:
STT_FUNC         STB_LOCAL  STO_ENTRY      _ZN36_GLOBAL__N__424dd0fe_4_k_cu_99c9e5656hiddenEPf
STT_OBJECT       STB_WEAK   STV_DEFAULT  U .nv.reservedSmem.offset0
STT_?            STB_WEAK   STO_RESERVED_SHARED   __nv_reservedSMEM_offset_0_alias
STT_FUNC         STB_LOCAL  STV_DEFAULT    $_Z6callerPf$_Z6helperf
STT_FUNC         STB_GLOBAL STO_ENTRY      _Z6callerPf
STT_FUNC         STB_GLOBAL STO_ENTRY      tril_kernel
STT_FUNC         STB_GLOBAL STO_ENTRY      _Z5tiledILi32EEvPKfPf
""",
    """
Fatbin elf code:
================
arch = sm_90a

symbols:
FUNC          LOCAL   DEFAULT    ENTRY                    _ZN36_GLOBAL__N__424dd0fe_4_k_cu_99c9e5656hiddenEPf
OBJECT        WEAK    DEFAULT    -                     U  .nv.reservedSmem.offset0
NOTYPE        WEAK    DEFAULT    RESERVED_SHARED                      __nv_reservedSMEM_offset_0_alias
FUNC          LOCAL   DEFAULT    -                        $_Z6callerPf$_Z6helperf
FUNC          GLOBAL  DEFAULT    ENTRY                    _Z6callerPf
FUNC          GLOBAL  DEFAULT    ENTRY                    tril_kernel
FUNC          GLOBAL  DEFAULT    ENTRY                    _Z5tiledILi32EEvPKfPf
""",
]


@pytest.fixture
def cuobjdump(tmp_path, monkeypatch):
    """`cuobjdump(script)` puts a shell script in the tool's place."""

    def put(script):
        tool = tmp_path / "cuobjdump"
        tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        tool.chmod(0o755)
        monkeypatch.setattr(device_code, "find_cuobjdump", lambda: str(tool))

    return put


@pytest.mark.parametrize("listing", LISTINGS, ids=["cuobjdump 12.8", "cuobjdump 13.5"])
def test_cuobjdumps_list_is_read_for_kernels_only(tmp_path, cuobjdump, listing):
    cuobjdump(f"cat << 'END'\n{listing}\nEND")
    assert device_symbols(tmp_path / "x.so") == {HIDDEN, "_Z6callerPf", "tril_kernel", "_Z5tiledILi32EEvPKfPf"}


def test_a_list_without_end_is_given_up_and_names_nothing(tmp_path, cuobjdump):
    cuobjdump("exec yes 'FUNC GLOBAL DEFAULT ENTRY _Z5tiledPKf'")
    assert device_symbols(tmp_path / "x.so") == set()


def test_a_tool_that_takes_too_long_over_a_file_names_nothing(tmp_path, cuobjdump):
    cuobjdump("echo 'FUNC GLOBAL DEFAULT ENTRY tiled'; exec sleep 30")
    began = time.monotonic()
    assert device_symbols(tmp_path / "x.so", timeout_s=0.3) == set()
    assert device_symbols(tmp_path / "x.so", timeout_s=-1.0) == set()
    assert time.monotonic() - began < 10


def test_a_file_of_more_kernels_than_are_looked_at_names_nothing(tmp_path, cuobjdump):
    cuobjdump("for n in 1 2 3 4 5; do echo FUNC GLOBAL DEFAULT ENTRY tile$n; done")
    assert len(device_symbols(tmp_path / "x.so", most=5)) == 5
    assert device_symbols(tmp_path / "x.so", most=4) == set()


def test_a_symbol_of_many_words_is_read_in_no_time():
    line = "FUNC GLOBAL DEFAULT ENTRY " + "ENTRY " * 200_000
    began = time.monotonic()
    assert list(device_code._entries(f"{line}\nFUNC GLOBAL DEFAULT ENTRY tiled")) == ["ENTRY", "tiled"]
    assert time.monotonic() - began < 5


def test_a_tool_that_fails_is_as_good_as_none(tmp_path, cuobjdump, monkeypatch):
    cuobjdump("exit 1")
    assert device_symbols(tmp_path / "x.so") is None
    monkeypatch.setattr(device_code, "find_cuobjdump", lambda: str(tmp_path / "no-such-tool"))
    assert device_symbols(tmp_path / "x.so") is None


def test_strings_are_those_that_end_in_a_zero_and_hold_a_word_that_is_looked_for(tmp_path):
    path = tmp_path / "x.so"
    path.write_bytes(b"1_Z5tiledPf\0other\0tiled\xfftiled.2\0" + b"x" * 3000 + b"tiled\0ti\0")
    assert list(strings_of(path, {"tiled"})) == ["_Z5tiledPf", "tiled.2"]


def test_letters_without_end_are_read_in_no_time(tmp_path):
    path = tmp_path / "x.so"
    path.write_bytes(b"a" * (8 << 20))
    began = time.monotonic()
    assert list(strings_of(path, {"a"})) == []
    assert time.monotonic() - began < 5
