"""Names of kernels, read from what a build and a run left behind."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from harness.provenance import demangling, symbols
from harness.provenance.demangling import demangled
from harness.provenance.symbols import (
    device_symbols, entry_symbols, find_cuobjdump, gather, shipped_by_pytorch,
    triton_kernels,
)

SOURCE = Path(__file__).with_name("kernels.cu")
NAMES = {
    "void tiled<32>(float const*, float*)", "(anonymous namespace)::hidden(float*)", "tril_kernel", "caller(float*)",
}
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
needs_demangler = pytest.mark.skipif(demangled("_Z1fv") == "_Z1fv", reason="there is no demangler here")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc here")


@needs_demangler
@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z5tiledPKfS0_Pfi", "tiled(float const*, float const*, float*, int)"),
        ("_Z5tiledILi32EEvPKfPf", "void tiled<32>(float const*, float*)"),
        ("_ZN8launches4tileEv", "launches::tile()"),
        (HIDDEN, "(anonymous namespace)::hidden(float*)"),
        ("tril_kernel", "tril_kernel"),
        ("_Znonsense", "_Znonsense"),
        ("", ""),
    ],
)
def test_a_mangled_symbol_gets_its_cpp_name_and_anything_else_stays(symbol, name):
    assert demangled(symbol) == name


def test_without_a_demangler_symbols_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(demangling, "_demangler", lambda: (None, None))
    assert demangled("_Z5tiledPKfS0_Pfi") == "_Z5tiledPKfS0_Pfi"


@pytest.mark.parametrize("listing", LISTINGS, ids=["cuobjdump 12.8", "cuobjdump 13.5"])
def test_cuobjdumps_list_is_read_for_kernels_only(tmp_path, monkeypatch, listing):
    tool = tmp_path / "cuobjdump"
    tool.write_text(f"#!/bin/sh\ncat << 'END'\n{listing}\nEND\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setattr(symbols, "find_cuobjdump", lambda: str(tool))
    assert device_symbols(tmp_path / "x.so") == {HIDDEN, "_Z6callerPf", "tril_kernel", "_Z5tiledILi32EEvPKfPf"}


@needs_demangler
def test_without_cuobjdump_names_are_strings_of_the_extension_and_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setattr(symbols, "find_cuobjdump", lambda: None)
    path = tmp_path / "extension.so"
    path.write_bytes(b"\x7fELF\x00\x01_Z5tiledPKfS0_Pfi\x00junk\xfftril_kernel\x00")
    found = gather([path], None, None, [])
    assert {"tril_kernel", "tiled(float const*, float const*, float*, int)"} <= found.strings
    assert found.extension == {}


def test_a_list_without_end_is_given_up_and_names_nothing(tmp_path, monkeypatch):
    tool = tmp_path / "cuobjdump"
    tool.write_text("#!/bin/sh\nexec yes 'FUNC GLOBAL DEFAULT ENTRY _Z5tiledPKf'\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setattr(symbols, "find_cuobjdump", lambda: str(tool))
    assert device_symbols(tmp_path / "x.so") == set()


def test_a_tool_that_fails_is_as_good_as_none(tmp_path, monkeypatch):
    monkeypatch.setattr(symbols, "find_cuobjdump", lambda: str(tmp_path / "no-such-tool"))
    assert device_symbols(tmp_path / "x.so") is None


def test_an_extension_that_is_gone_has_no_names(tmp_path):
    found = gather([tmp_path / "gone.so"], None, None, [])
    assert not found.strings
    assert not found.extension


@pytest.fixture(scope="module")
def cubin(tmp_path_factory):
    path = tmp_path_factory.mktemp("device") / "kernels.cubin"
    subprocess.run(["nvcc", "-arch=sm_90a", "-cubin", "-o", path, SOURCE], check=True, timeout=300)
    return path


@needs_nvcc
@needs_demangler
def test_entries_are_read_from_real_device_code_and_helpers_are_none(cubin):
    assert {demangled(symbol) for symbol in entry_symbols(cubin.read_bytes())} == NAMES


@needs_nvcc
@needs_demangler
@pytest.mark.skipif(find_cuobjdump() is None, reason="there is no cuobjdump here")
def test_kernels_of_every_linkage_come_out_of_a_real_shared_object(tmp_path):
    built = tmp_path / "kernels.so"
    command = ["nvcc", "-arch=sm_90a", "-shared", "-Xcompiler", "-fPIC", "-cudart", "none", "-o", built, SOURCE]
    subprocess.run(command, check=True, timeout=300)
    assert set(gather([built], None, None, []).extension) == NAMES


@pytest.mark.parametrize(
    "content",
    [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 200, b"tril_kernel\0" * 40, b"\x7fELF\x02\x01" + b"\0" * 60],
)
def test_what_is_no_device_code_has_no_entries(content):
    assert entry_symbols(content) == set()


def test_names_without_end_in_a_cubin_are_not_read_to_it(monkeypatch):
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    text = b"x" * 4096 + b"\0"
    table = b"".join(struct.pack("<IBBHQQ", at, 2, 0x10, 1, 0, 0) for at in range(500))
    sections = struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, 64, len(table), 1, 0, 0, 24) + struct.pack(
        "<IIQQQQIIQQ", 0, 3, 0, 0, 64 + len(table), len(text), 0, 0, 0, 0)
    struct.pack_into("<Q", header, 40, 64 + len(table) + len(text))
    struct.pack_into("<HH", header, 58, 64, 2)
    content = bytes(header) + table + text + sections
    assert len(entry_symbols(content)) == 500
    monkeypatch.setattr(symbols, "_MOST_OF_NAMES", 1 << 20)
    assert entry_symbols(content) == set()
    monkeypatch.undo()
    monkeypatch.setattr(symbols, "_LONGEST_SYMBOL", 1000)
    assert entry_symbols(content) == set()


@pytest.fixture
def triton_cache(tmp_path):
    """`triton_cache(name, cubin, description)` makes an entry like Triton's."""

    def make(name, content, described=None):
        folder = tmp_path / "triton" / f"HASH{len(list(tmp_path.glob('triton/*')))}"
        folder.mkdir(parents=True)
        text = json.dumps({"name": name, "num_warps": 8}) if described is None else described
        (folder / f"{name}.json").write_text(text)
        if content is not None:
            (folder / f"{name}.cubin").write_bytes(content)
        return tmp_path / "triton"

    return make


@needs_nvcc
def test_a_triton_kernel_has_a_description_and_a_cubin_with_its_entry(triton_cache, cubin):
    cache = triton_cache("tril_kernel", cubin.read_bytes())
    assert triton_kernels(cache, ["tril_kernel", "other_kernel"]) == {"tril_kernel"}


@needs_nvcc
def test_a_description_without_device_code_of_that_name_says_nothing(triton_cache, cubin):
    triton_cache("ampere_sgemm_128x64_nn", None)
    triton_cache("forged_kernel", b"forged_kernel\0")
    cache = triton_cache("other_kernel", cubin.read_bytes())
    assert triton_kernels(cache, ["ampere_sgemm_128x64_nn", "forged_kernel", "other_kernel"]) == set()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"name": 3}', "{}", "\x00", "[" * 100_000])
def test_a_description_that_says_nothing_useful_is_passed_over(triton_cache, text):
    assert triton_kernels(triton_cache("x", b"", text), ["x"]) == set()


@needs_nvcc
def test_a_triton_kernel_counts_only_when_the_source_has_a_function_of_its_name(triton_cache, cubin, tmp_path):
    cache = triton_cache("tril_kernel", cubin.read_bytes())
    source = tmp_path / "candidate.py"
    source.write_text("@triton.jit\ndef tril_kernel(a):\n    pass\n")
    assert gather([], cache, source, ["tril_kernel"]).triton == {"tril_kernel"}
    source.write_text("from liger_kernel import tril_kernel\n")
    assert gather([], cache, source, ["tril_kernel"]).triton == set()


def test_no_cache_and_no_extension_mean_no_names(tmp_path):
    for cache in (None, tmp_path / "missing"):
        found = gather([], cache, None, ["tril_kernel"])
        assert not found.extension and not found.strings and not found.triton


def test_a_symbol_is_looked_for_in_pytorchs_libraries_past_the_names_of_anonymous_namespaces(tmp_path):
    theirs = b"_ZN45_GLOBAL__N__7f4e21aa_11_SoftMax_cu_0a1b2c3d_456hiddenEPf"
    (tmp_path / "libtorch_cuda.so").write_bytes(b"\0" * 100 + theirs + b"\0_ZN7cutlass7Kernel2IiEEvT_\0")
    asked = [HIDDEN, "_ZN7cutlass7Kernel2IiEEvT_", "_ZN7cutlass7Kernel2IfEEvT_", "_ZN3foo36" + HIDDEN[5:]]
    assert shipped_by_pytorch(asked, tmp_path) == {HIDDEN, "_ZN7cutlass7Kernel2IiEEvT_"}
    assert shipped_by_pytorch(asked, tmp_path / "missing") == set()


def test_a_symbol_is_found_where_two_pieces_of_a_library_meet(tmp_path, monkeypatch):
    monkeypatch.setattr(symbols, "_CHUNK_BYTES", 64)
    (tmp_path / "libtorch_cuda.so").write_bytes(b"x" * 50 + b"\0_ZN7cutlass7Kernel2IiEEvT_\0" + b"x" * 100)
    assert shipped_by_pytorch(["_ZN7cutlass7Kernel2IiEEvT_"], tmp_path) == {"_ZN7cutlass7Kernel2IiEEvT_"}


def test_a_namespace_that_ends_in_digits_does_not_confuse_the_count_of_letters(tmp_path):
    symbol = "_ZN4foo1" + HIDDEN[3:]
    (tmp_path / "libtorch_cuda.so").write_bytes(b"\0_ZN4foo141_GLOBAL__N__00000000_9_other_cu_11111111_226hiddenEPf\0")
    assert shipped_by_pytorch([symbol], tmp_path) == {symbol}
