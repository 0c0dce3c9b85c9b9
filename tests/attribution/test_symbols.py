"""Names of kernels, read from what a build and a run left behind."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest

from harness.attribution import demangling, device_code, symbols
from harness.attribution.demangling import demangled_names
from harness.attribution.device_code import find_cuobjdump
from harness.attribution.kernel_names import bare_name
from harness.attribution.symbols import entry_symbols, gather, triton_kernels

pytestmark = pytest.mark.processes

SOURCE = Path(__file__).with_name("kernels.cu")
NAMES = {
    "void tiled<32>(float const*, float*)", "(anonymous namespace)::hidden(float*)", "tril_kernel", "caller(float*)",
}
HIDDEN = "_ZN36_GLOBAL__N__424dd0fe_4_k_cu_99c9e5656hiddenEPf"
needs_demangler = pytest.mark.skipif(demangled_names(["_Z1fv"])["_Z1fv"] == "_Z1fv", reason="there is no demangler here")
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
    assert demangled_names([symbol]) == {symbol: name}


def test_without_a_demangler_symbols_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(demangling, "_demangler", lambda: (None, None))
    assert demangling._demangled("_Z5tiledPKfS0_Pfi") == "_Z5tiledPKfS0_Pfi"


@needs_demangler
def test_without_cuobjdump_names_are_strings_of_the_extension_and_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setattr(device_code, "find_cuobjdump", lambda: None)
    path = tmp_path / "extension.so"
    path.write_bytes(b"\x7fELF\x00\x01_Z5tiledPKfS0_Pfi\x00junk\xfftril_kernel\x00")
    tiled = "tiled(float const*, float const*, float*, int)"
    found = gather([path], None, None, ["tril_kernel", tiled])
    assert found.strings == {"tril_kernel", tiled}
    assert not found.extension


@pytest.mark.parametrize("symbol", [
    "tril_kernel", "_Z5tiledPKfS0_Pfi", "_ZN12_GLOBAL__N_15tiledEPKf", "_Z4tileILi32EEvPKfi",
    "_ZN5tiles4tileILi32EEEvPKfi", "_ZN5tilesILi8EE4tileIfEEvPKT_", "_ZN5tilesclEPKf",
    "_ZN6thrust8cuda_cub4core13_kernel_agentINS1_8ParallelIiEEiEEvT0_",
])
def test_what_may_be_the_symbol_of_a_traced_name_is_demangled_whatever_else_lies_beside_it(symbol):
    name = demangled_names([symbol])[symbol]
    assert symbol in symbols.with_a_name_of({bare_name(name)}, {symbol, "_Z7anotherPf"})


def test_symbols_of_other_names_than_the_traced_ones_are_left_alone():
    assert symbols.with_a_name_of({"tiled"}, {"_Z5tiledPKf", "_Z7anotherPf"}) == {"_Z5tiledPKf"}
    assert symbols.with_a_name_of(set(), {"_Z7anotherPf"}) == set()



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
    assert set(demangled_names(entry_symbols(cubin.read_bytes())).values()) == NAMES


@needs_nvcc
@needs_demangler
@pytest.mark.skipif(find_cuobjdump() is None, reason="there is no cuobjdump here")
def test_kernels_of_every_linkage_come_out_of_a_real_shared_object(tmp_path):
    built = tmp_path / "kernels.so"
    command = ["nvcc", "-arch=sm_90a", "-shared", "-Xcompiler", "-fPIC", "-cudart", "none", "-o", built, SOURCE]
    subprocess.run(command, check=True, timeout=300)
    assert set(gather([built], None, None, NAMES).extension) == NAMES


@pytest.mark.parametrize(
    "content",
    [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 200, b"tril_kernel\0" * 40, b"\x7fELF\x02\x01" + b"\0" * 60],
)
def test_what_is_no_device_code_has_no_entries(content):
    assert entry_symbols(content) == set()


def cubin_of(count, section):
    """An ELF file with so many entry functions, whose names are the ends of one long text, in that section."""
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    text = b"x" * 4096 + b"\0"
    table = b"".join(struct.pack("<IBBHQQ", at, 2, 0x10, section, 0, 0) for at in range(count))
    sections = struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, 64, len(table), 1, 0, 0, 24) + struct.pack(
        "<IIQQQQIIQQ", 0, 3, 0, 0, 64 + len(table), len(text), 0, 0, 0, 0)
    struct.pack_into("<Q", header, 40, 64 + len(table) + len(text))
    struct.pack_into("<HH", header, 58, 64, 2)
    return bytes(header) + table + text + sections


def test_an_entry_that_is_defined_elsewhere_is_none_of_the_file():
    assert len(entry_symbols(cubin_of(3, section=1))) == 3
    assert entry_symbols(cubin_of(3, section=0)) == set()


def test_names_without_end_in_a_cubin_are_not_read_to_it(monkeypatch):
    content = cubin_of(500, section=1)
    assert len(entry_symbols(content)) == 500
    monkeypatch.setattr(symbols, "_MOST_OF_NAMES", 1 << 20)
    assert entry_symbols(content) == set()
    monkeypatch.undo()
    monkeypatch.setattr(symbols, "_LONGEST_SYMBOL", 1000)
    assert entry_symbols(content) == set()


@pytest.fixture
def triton_cache(tmp_path):
    """`triton_cache(name, cubin, description)` makes an entry like Triton's, of a candidate in `tmp_path`."""

    def make(name, content, described=None):
        folder = tmp_path / "triton" / f"HASH{len(list(tmp_path.glob('triton/*')))}"
        folder.mkdir(parents=True)
        text = json.dumps({"name": name, "num_warps": 8}) if described is None else described
        (folder / f"{name}.json").write_text(text)
        if content is not None:
            (folder / f"{name}.cubin").write_bytes(content)
        (folder / f"{name}.ttir").write_text(f'#loc = loc("{tmp_path}/candidate.py":22:0)\nmodule {{')
        return tmp_path / "triton"

    return make


@needs_nvcc
def test_a_triton_kernel_has_a_description_and_a_cubin_with_its_entry(triton_cache, cubin, tmp_path):
    cache = triton_cache("tril_kernel", cubin.read_bytes())
    assert triton_kernels(cache, ["tril_kernel", "other_kernel"], tmp_path) == {"tril_kernel"}


@needs_nvcc
def test_a_kernel_that_was_compiled_from_a_packages_file_is_none_of_the_candidates(triton_cache, cubin, monkeypatch, tmp_path):
    monkeypatch.setattr(symbols, "installed_folders", lambda: {str(tmp_path / "site-packages")})
    cache = triton_cache("tril_kernel", cubin.read_bytes())
    (form,) = (path.with_suffix(".ttir") for path in cache.glob("*/*.json"))
    helper = f'#loc12 = loc("{tmp_path}/site-packages/triton/language/standard.py":293:36)\n'
    form.write_text(f'#loc = loc("{tmp_path}/candidate.py":22:0)\n{helper}module {{')
    assert triton_kernels(cache, ["tril_kernel"], tmp_path) == {"tril_kernel"}
    form.write_text(f'#loc = loc("/where/it/lay/before.py":22:0)\n{helper}module {{')
    assert triton_kernels(cache, ["tril_kernel"], tmp_path) == {"tril_kernel"}
    for other in (f'#loc = loc("{tmp_path}/site-packages/fast/ops.py":22:0)\n', "#loc = loc(unknown)\n", ""):
        form.write_text(f"{other}{helper}module {{")
        assert triton_kernels(cache, ["tril_kernel"], tmp_path) == set()
    form.unlink()
    assert triton_kernels(cache, ["tril_kernel"], tmp_path) == set()


@needs_nvcc
def test_a_description_without_device_code_of_that_name_says_nothing(triton_cache, cubin, tmp_path):
    triton_cache("ampere_sgemm_128x64_nn", None)
    triton_cache("forged_kernel", b"forged_kernel\0")
    cache = triton_cache("other_kernel", cubin.read_bytes())
    assert triton_kernels(cache, ["ampere_sgemm_128x64_nn", "forged_kernel", "other_kernel"], tmp_path) == set()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"name": 3}', "{}", "\x00", "[" * 100_000])
def test_a_description_that_says_nothing_useful_is_passed_over(triton_cache, text, tmp_path):
    assert triton_kernels(triton_cache("x", b"", text), ["x"], tmp_path) == set()


def test_a_cache_of_endless_descriptions_is_given_up(triton_cache, monkeypatch, tmp_path):
    monkeypatch.setattr(symbols, "_MOST_CACHE_S", 0.3)
    looked = []
    monkeypatch.setattr(symbols, "_is_kernel", lambda path, name, folder: looked.append(time.sleep(0.1)))
    for _ in range(20):
        cache = triton_cache("tril_kernel", None)
    assert triton_kernels(cache, ["tril_kernel"], tmp_path) == set()
    assert 1 <= len(looked) <= 4


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


@needs_demangler
def test_of_more_symbols_than_are_looked_at_those_that_were_traced_come_first(tmp_path, monkeypatch):
    many = {f"_Z{len(f'a{n}')}a{n}v" for n in range(50)} | {"_Z5tiledPf"}
    monkeypatch.setattr(symbols, "device_symbols", lambda path, timeout_s, most: many)
    monkeypatch.setattr(demangling, "_MOST_SYMBOLS", 10)
    # The name of an operator is not spelt out in its symbol, so that every symbol may be its.
    found = gather([tmp_path / "x.so"], None, None, ["tiled(float*)", "more::operator()(float*)"]).extension
    assert "tiled(float*)" in found
    assert sum(name.endswith("()") for name in found) == 9


def test_extensions_share_one_limit_of_symbols_and_of_time(tmp_path, monkeypatch):
    asked = []

    def listed(path, timeout_s, most):
        asked.append((timeout_s, most))
        return {f"kernel_{path.name}"}

    monkeypatch.setattr(symbols, "device_symbols", listed)
    found = gather([tmp_path / "a", tmp_path / "b"], None, None, ["kernel_a", "kernel_b"])
    assert found.extension == {"kernel_a", "kernel_b"}
    assert [most for _, most in asked] == [symbols._MOST_SYMBOLS, symbols._MOST_SYMBOLS - 1]
    assert asked[1][0] < asked[0][0] <= symbols._MOST_S
