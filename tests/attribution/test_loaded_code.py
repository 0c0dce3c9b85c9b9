"""Which machine code was loaded under the names of a build's kernels."""

from __future__ import annotations

import shutil
import struct
import subprocess

import pytest

from harness.attribution import loaded_code
from harness.attribution.device_code import find_cuobjdump
from harness.attribution.loaded_code import LoadedCode, code_by_symbol, not_of_the_build, read_modules

SM = "9.0"
OWN, OTHER = "y[0] = x[0];", "y[0] = 2.0f * x[0];"
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


def behind_lengths(*modules):
    return b"".join(struct.pack("<Q", len(each)) + each + bytes(-len(each) % 8) for each in modules)


def test_modules_are_read_behind_their_lengths():
    assert read_modules(behind_lengths(b"one", b"eight...", b""), 3, is_whole=True) == LoadedCode([b"one", b"eight...", b""], is_whole=True)


@pytest.mark.parametrize("content", [b"", struct.pack("<Q", 9) + b"short", behind_lengths(b"one")[:7]])
def test_what_is_cut_off_is_missing(content):
    assert not read_modules(content, 1, is_whole=True).is_whole


@pytest.mark.parametrize("content", [b"", b"text", b"\x7fELF\x02\x01" + bytes(58), b"\x7fELF\x02\x01" + b"\xff" * 90])
def test_what_is_no_device_code_cannot_be_read(content):
    assert code_by_symbol(content) is None


def elf(*functions):
    """An ELF file with so many sections `.text.tile`, each of which is said to have the place and size that are given."""
    names = b"\0.text.tile\0.strtab\0"
    header = b"\x7fELF\x02\x01" + bytes(34) + struct.pack("<Q", 64) + bytes(10) + struct.pack("<HHH", 64, len(functions) + 1, len(functions))
    table = [struct.pack("<II4Q", 1, 1, 0, 0, *each) for each in functions]
    table.append(struct.pack("<II4Q", 12, 3, 0, 0, 64 * (len(functions) + 2), len(names)))
    return header.ljust(64, b"\0") + b"".join(each.ljust(64, b"\0") for each in table) + names


def test_two_functions_of_one_name_and_one_that_ends_beyond_the_file_are_forged():
    assert list(code_by_symbol(elf((64, 8)))) == ["tile"]
    assert code_by_symbol(elf((64, 8), (72, 8))) is None
    assert code_by_symbol(elf((64, 1 << 40))) is None


def test_more_modules_than_are_looked_at_are_missing():
    assert not read_modules(bytes(8 * 20_000), 20_000, is_whole=True).is_whole


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """`made(BODY, NAME)`: a shared object and a cubin of one kernel `tile` with that body."""
    if find_cuobjdump() is None:
        pytest.skip("needs cuobjdump")
    folder = tmp_path_factory.mktemp("loaded")

    def make(body, name="__global__ void tile"):
        source = folder / "tile.cu"
        source.write_text(f"{name}(float* x, float* y) {{ {body} }}")
        library, cubin = folder / "tile.so", folder / "tile.cubin"
        subprocess.run(["nvcc", "-arch=sm_90a", "-cubin", "-o", cubin, source], check=True, timeout=300)
        subprocess.run(["nvcc", "-arch=sm_90a", "-shared", "-Xcompiler", "-fPIC", "-o", library, source], check=True, timeout=300)
        return library, cubin.read_bytes()

    return make


@pytest.mark.processes
@pytest.mark.slow
@needs_nvcc
def test_code_of_the_builds_name_that_the_build_did_not_make_is_nobodys(made):
    _, other = made(OTHER)
    library, own = made(OWN)
    [name] = ["tile(float*, float*)"]
    assert not_of_the_build([name], LoadedCode([own], is_whole=True), [library], SM) == {}
    assert not_of_the_build([name], LoadedCode([other, b"no module"], is_whole=True), [library], SM) == {
        name: "was loaded as other machine code than the build made",
    }
    assert name in not_of_the_build([name], LoadedCode([own, other], is_whole=True), [library], SM)
    assert not_of_the_build([name], LoadedCode([other], is_whole=True), [library], "10.0") == {}  # made from PTX there
    assert not_of_the_build([], LoadedCode([other], is_whole=True), [library], SM) == {}


@pytest.mark.processes
@pytest.mark.slow
@needs_nvcc
def test_where_modules_are_missing_a_name_that_none_of_the_others_has_is_nobodys(made):
    library, own = made(OWN)
    [name] = ["tile(float*, float*)"]
    assert not_of_the_build([name], LoadedCode([], is_whole=True), [library], SM) == {}
    assert "seen to be loaded" in not_of_the_build([name], LoadedCode([], is_whole=False), [library], SM)[name]
    assert not_of_the_build([name], LoadedCode([own], is_whole=False), [library], SM) == {}


@pytest.mark.processes
@pytest.mark.slow
@needs_nvcc
def test_a_symbol_of_other_letters_that_stands_for_the_same_name_is_no_way_around(made):
    _, alias = made(OTHER, 'extern "C" __global__ void _Z4tilePfPf')
    library, _ = made(OWN)
    assert list(code_by_symbol(alias)) == ["_Z4tilePfPf"]
    [name] = ["tile(float*, float*)"]
    assert name in not_of_the_build([name], LoadedCode([alias], is_whole=True), [library], SM)


@pytest.mark.processes
@pytest.mark.slow
@needs_nvcc
def test_of_code_that_cannot_be_taken_out_of_the_build_nothing_is_known(made, monkeypatch):
    library, own = made(OWN)
    monkeypatch.setattr(loaded_code, "_EXTRACTED_BYTES", 0)
    [name] = ["tile(float*, float*)"]
    assert "cannot be read" in not_of_the_build([name], LoadedCode([own], is_whole=True), [library], SM)[name]


@pytest.mark.processes
@pytest.mark.slow
@needs_nvcc
def test_an_extension_without_device_code_is_none_that_cannot_be_read(made, tmp_path):
    library, own = made(OWN)
    plain = tmp_path / "plain.so"
    (tmp_path / "plain.c").write_text("int one() { return 1; }")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", plain, tmp_path / "plain.c"], check=True, timeout=60)
    assert not_of_the_build(["tile(float*, float*)"], LoadedCode([own], is_whole=True), [plain, library], SM) == {}
