"""The toolchain, the key of an extension, and what is believed of a builder's answer."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.build import toolchain as environment
from harness.build.compile_only import without_architectures
from harness.build.outcome import Ending, judge
from harness.build.toolchain import arch_of, find_toolchain
from harness.model.candidate import Candidate
from harness.model.verdict import ReasonCode, Status
from harness.protocol.extension_key import extension_key
from harness.sandbox.environment import scrubbed

CANDIDATE = Candidate("tile", Path("tile.py"), "", "0" * 16, "cpp")


@pytest.mark.parametrize(("capability", "arch"), [
    ((9, 0), "9.0a"), ((10, 0), "10.0a"), ((12, 0), "12.0a"), ((8, 9), "8.9"), ((7, 5), "7.5"),
])
def test_architectures_get_the_suffix_that_wgmma_needs_from_hopper_on(capability, arch):
    assert arch_of(capability) == arch


def test_without_a_gpu_the_toolchain_only_compiles():
    toolchain = find_toolchain(None)
    assert toolchain.compile_only and toolchain.sm == "sm_90a"
    assert toolchain.python == ".".join(map(str, sys.version_info[:3]))


def test_the_toolchain_agrees_with_torch():
    import torch

    toolchain = find_toolchain("8.0")
    assert (toolchain.torch, toolchain.torch_cuda) == (torch.__version__, torch.version.cuda)
    assert toolchain.arch == "8.0" and not toolchain.compile_only


def script(path, said):
    path.write_text(f"#!/bin/sh\necho {said}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("name", ["NVCC_CCBIN", "CC"])
@pytest.mark.processes
def test_another_version_of_a_compiler_that_a_variable_names_is_another_toolchain(name, tmp_path, monkeypatch):
    found = []
    for version in ("12.1", "12.2", "12.2"):
        environment._output.cache_clear()  # in one run no compiler changes
        monkeypatch.setenv(name, script(tmp_path / "g++", f"g++ {version}"))
        found.append(find_toolchain(None).environment)
    assert found[0] != found[1] == found[2]
    assert (f"{name} --version", "g++ 12.2\n") in found[1]


@pytest.mark.processes
def test_nvccs_host_compiler_may_be_named_by_its_folder_and_reaches_the_builder(tmp_path, monkeypatch):
    script(tmp_path / "g++", "g++ 12.3")
    monkeypatch.setenv("NVCC_CCBIN", str(tmp_path))
    environment._output.cache_clear()
    assert ("NVCC_CCBIN --version", "g++ 12.3\n") in find_toolchain(None).environment
    assert scrubbed(os.environ)["NVCC_CCBIN"] == str(tmp_path)


def test_architectures_are_taken_out_of_flags():
    flags = ["-O3", "-gencode", "arch=compute_80,code=sm_80", "-arch=sm_90", "--use_fast_math"]
    assert without_architectures(flags) == ["-O3", "--use_fast_math"]


def test_calls_that_build_the_same_have_one_key():
    one = extension_key("load_inline", {"name": "x", "cpp_sources": "a", "functions": "f", "verbose": True})
    other = extension_key("load_inline", {
        "functions": ["f"], "cpp_sources": ("a",), "name": "x", "cuda_sources": None, "build_directory": "/b",
    })
    assert one == other and len(one) == 16


@pytest.mark.parametrize("change", [
    {"cpp_sources": "b"}, {"functions": ["g"]}, {"extra_cflags": ["-O3"]},
    {"cuda_sources": "c"}, {"is_python_module": False}, {"functions": {"f": "words"}},
])
def test_calls_that_build_something_else_have_another_key(change):
    given = {"name": "x", "cpp_sources": "a", "functions": ["f"]}
    assert extension_key("load_inline", {**given, **change}) != extension_key("load_inline", given)


def test_load_is_keyed_by_the_contents_of_its_files(tmp_path):
    path = tmp_path / "x.cpp"
    keys = []
    for text in ("first", "second"):
        path.write_text(text)
        keys.append(extension_key("load", {"name": "x", "sources": [str(path)]}))
    assert keys[0] != keys[1]


def answer(**changes):
    return {"extensions": [], "log": "", "failure": None, "warnings": [], "files": [], **changes}


def judged(tmp_path, body):
    build, _ = judge(Ending(body), CANDIDATE, find_toolchain(None), tmp_path, 1.0, 600)
    return build.verdict


@pytest.mark.parametrize("kind", ["outside", "link"])
def test_a_library_outside_the_builds_own_folder_is_not_taken(tmp_path, kind):
    private = tmp_path / "private"
    private.mkdir()
    outside = tmp_path / "outside.so"
    outside.write_bytes(b"")
    path = outside
    if kind == "link":
        path = private / "link.so"
        path.symlink_to(outside)
    entry = {"key": "k", "module_name": "m", "path": str(path), "is_python_module": True, "cuda": False}
    assert judged(private, answer(extensions=[entry])).reason_code is ReasonCode.PROTOCOL


def test_a_builder_that_was_killed_for_memory_says_so(tmp_path):
    ending = Ending(None, "died", -9, "killed by the system for using more than 19.0 GB of memory", True)
    build, _ = judge(ending, CANDIDATE, find_toolchain(None), tmp_path, 1.0, 600)
    assert build.verdict.status is Status.OUT_OF_MEMORY


def test_a_missing_instruction_is_a_matter_of_the_gpu_and_not_of_the_candidate(tmp_path):
    log = (Path(__file__).with_name("recorded") / "ptxas_needs_arch.txt").read_text()
    verdict = judged(tmp_path, answer(failure={"kind": "compile_error", "message": "", "log": log}))
    assert verdict.status is Status.SKIPPED and verdict.reason_code is ReasonCode.NEEDS_ARCH
    assert verdict.reason == "needs sm_90a: it uses wgmma.fence, which sm_80 does not have"
