"""nvcc's two front ends at the same time: what comes of it is nvcc's own, and what it does not know is left to nvcc."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.build import parallel_front_ends
from harness.build.cache import Cache
from harness.build.cubin import constant_bytes
from harness.build.dependencies import files_of_rule
from harness.build.queue import BuildQueue
from harness.build.stand_in_headers import STOCK_VARIABLE
from harness.build.toolchain import find_toolchain
from harness.model.settings import load_settings
from harness.sandbox.sandbox_choice import strongest_sandbox

pytestmark = pytest.mark.processes

NVCC = find_toolchain(None).nvcc_path
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="there is no nvcc")

KERNEL = """
#include "both.h"
#ifdef __CUDA_ARCH__
#include "device only.h"
#endif
namespace {
__device__ float offset;
}
__global__ void kernel(float* out) { out[threadIdx.x] = FACTOR * threadIdx.x + offset; }
void launch(float* out) { kernel<<<1, 32>>>(out); }
"""
ARCHITECTURE = ["-gencode=arch=compute_80,code=sm_80"]
USUAL = [*ARCHITECTURE, "-std=c++17", "-Xcompiler", "-fPIC", "-Xptxas=-v"]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "both.h").write_text("#define FACTOR 2.0f\n")
    (tmp_path / "device only.h").write_text("")
    return tmp_path


def compiled(place, *flags, to="kernel.o", with_nvcc_itself=False):
    rule = ["--generate-dependencies-with-compile", "--dependency-output", f"{to}.d"]
    command = [NVCC] if with_nvcc_itself else shlex.split(parallel_front_ends.command_for(NVCC))
    return subprocess.run(
        [*command, *rule, *flags, "-c", "kernel.cu", "-o", to], cwd=place, capture_output=True, text=True, check=False,
    )


def section(path, name):
    """The bytes of an ELF section, found with Python alone."""
    raw = path.read_bytes()
    number = lambda at, size: int.from_bytes(raw[at : at + size], "little")  # noqa: E731
    table, size, count, names = number(0x28, 8), number(0x3A, 2), number(0x3C, 2), number(0x3E, 2)
    strings = number(table + names * size + 0x18, 8)
    for header in range(table, table + count * size, size):
        start = strings + number(header, 4)
        if raw[start : raw.index(b"\0", start)].decode() == name:
            return raw[number(header + 0x18, 8) :][: number(header + 0x20, 8)]
    raise AssertionError(f"no {name} in {path}")


def only_code(path):
    """The device's code, without the name of the module, which each compilation has one of its own of."""
    raw = section(path, ".nv_fatbin")
    return re.sub(rb"_[0-9a-f]{8}_\d+_\w+?_[0-9a-f]{8}", b"", raw[raw.index(b"\x7fELF"):]).rstrip(b"\0")


@needs_nvcc
def test_it_compiles_to_nvccs_own_code_says_the_same_and_read_the_same_files(place):
    theirs = compiled(place, *USUAL, "--no-compress", to="theirs.o", with_nvcc_itself=True)
    ours = compiled(place, *USUAL, "--no-compress", to="ours.o")
    assert (ours.returncode, theirs.returncode) == (0, 0), ours.stdout + theirs.stderr
    said = ours.stdout + ours.stderr
    assert "Used" in said and without_time(said) == without_time(theirs.stdout + theirs.stderr)
    assert only_code(place / "ours.o") == only_code(place / "theirs.o")
    read = {each: files_of_rule((place / f"{each}.o.d").read_text()) for each in ("ours", "theirs")}
    assert {"both.h", "device only.h"} <= {os.path.basename(file) for file in read["ours"]}
    assert {os.path.realpath(place / file) for file in read["ours"]} == {
        os.path.realpath(place / file) for file in read["theirs"]}


def without_time(said):
    return sorted(line for line in said.splitlines() if "Compile time" not in line)


@needs_nvcc
def test_the_steps_are_really_run_here_and_not_by_nvcc(place, monkeypatch, tmp_path):
    """Beside a program in nvcc's place that tells its steps, but refuses to take them."""
    fake = tmp_path / "bin" / "nvcc"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nfor last; do :; done\n[ "$last" = --dryrun ] && exec {shlex.quote(NVCC)} "$@"\nexit 97\n')
    fake.chmod(0o755)
    monkeypatch.chdir(place)
    came = parallel_front_ends.compile_with(str(fake), [*USUAL, "-c", "kernel.cu", "-o", "kernel.o"])
    assert came is not None and came[0] == 0 and (place / "kernel.o").is_file()
    (cubin,) = place.glob("kernel.o.sm_*.cubin")
    assert constant_bytes(cubin.read_bytes())
    assert not list(tmp_path.glob("side_by_side_*"))


@needs_nvcc
@pytest.mark.parametrize(("broken", "named"), [
    ("__global__ void kernel(float* out) { out[0] = missing; }", 'identifier "missing" is undefined'),
    ('__global__ void kernel() { asm volatile("no such instruction;"); }', "ptxas"),
    ("#include \"not_there.h\"", "not_there.h: No such file"),
])
def test_an_error_is_nvccs_own(place, broken, named):
    (place / "kernel.cu").write_text(broken)
    ours, theirs = compiled(place, *USUAL), compiled(place, *USUAL, with_nvcc_itself=True)
    assert ours.returncode != 0 and theirs.returncode != 0 and named in ours.stdout
    mentions = [line for line in theirs.stdout.splitlines() + theirs.stderr.splitlines() if "error" in line.lower()]
    assert all(line in ours.stdout for line in mentions if "tmp" not in line)


@needs_nvcc
@pytest.mark.parametrize("flags", [
    [*ARCHITECTURE, "-gencode=arch=compute_90,code=sm_90"], [*ARCHITECTURE, "-rdc=true"],
    [*ARCHITECTURE, "--keep"],
])
def test_what_is_more_than_one_source_for_one_architecture_is_left_to_nvcc(place, flags, monkeypatch):
    monkeypatch.chdir(place)
    assert parallel_front_ends.compile_with(NVCC, [*flags, "-c", "kernel.cu", "-o", "kernel.o"]) is None
    assert compiled(place, *flags).returncode == 0 and (place / "kernel.o").is_file()


@needs_nvcc
@pytest.mark.parametrize("name", ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"])
def test_flags_of_the_environment_count_too(place, name, monkeypatch):
    monkeypatch.chdir(place)
    usual = [*USUAL, "-c", "kernel.cu", "-o", "kernel.o"]
    assert parallel_front_ends.compile_with(NVCC, usual) is not None
    monkeypatch.setenv(name, "-lineinfo -rdc=true")
    assert parallel_front_ends.compile_with(NVCC, usual) is None


@pytest.mark.parametrize("dryrun", [
    "", "nvcc fatal   : Unknown option\n", "#$ gcc -E a.cu -o \"a.ii\"\n", "#$ _HERE_=/x\nsomething else\n",
])
def test_steps_that_are_not_known_are_none(dryrun):
    assert parallel_front_ends.read_steps(dryrun, "a.o") is None


@pytest.mark.parametrize("as_torch_would", [False, True])
def test_a_build_as_torch_itself_would_make_it_has_nvcc_as_it_is(as_torch_would, tmp_path, monkeypatch):
    monkeypatch.delenv(STOCK_VARIABLE, raising=False)
    monkeypatch.setenv("CUDA_HOME", "/cu$da")
    if as_torch_would:
        monkeypatch.setenv(STOCK_VARIABLE, "1")
    toolchain = replace(find_toolchain(None), compile_only=False, nvcc_path="/cu$da/bin/nvcc")
    with BuildQueue([], toolchain, Cache(tmp_path), load_settings("quick"), strongest_sandbox()) as queue:
        environment = queue._builders.environment(queue._jobs)
    assert environment["CUDA_HOME"] == "/cu$da"
    last = shlex.split(environment.get("PYTORCH_NVCC", ""))[-2:]  # this checkout's path may have a blank
    is_ours = [Path(each).name for each in last] == ["parallel_front_ends.py", "nvcc"] and last[1] == "/cu$$da/bin/nvcc"
    assert is_ours is not as_torch_would


def test_a_compiler_that_is_killed_is_left_to_nvcc(place, monkeypatch):
    steps = parallel_front_ends.Steps({}, ["kill -9 $$"], ["true"], "true", str(place / "id"))
    assert parallel_front_ends._carried_out(steps, "a.o") == (-9, b"")
    fake = place / "nvcc"
    fake.write_text("#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, "-I", parallel_front_ends.__file__, str(fake), "-c", "a.cu", "-o", "a.o"], check=False
    )
    assert ran.returncode == 3, "what nvcc itself said counts"
