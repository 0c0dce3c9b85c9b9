"""Finding compute-sanitizer, and the command lines for it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.tools.sanitizer import compute_sanitizer
from harness.tools.sanitizer.compute_sanitizer import TOOLS, command, find_tool, require_tool

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine without the tool."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compute_sanitizer.sys, "path", [str(tmp_path)])
    real = compute_sanitizer.shutil.which
    monkeypatch.setattr(
        compute_sanitizer.shutil, "which", lambda name, path: real(name, path=path.replace("/usr/local/cuda", "/none"))
    )
    return tmp_path


def program(folder):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "compute-sanitizer"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_it_is_looked_for_on_the_path_in_the_toolkit_and_among_the_wheels(nowhere, monkeypatch):
    assert find_tool() is None
    wheel = program(nowhere / "nvidia" / "cu13" / "bin")
    assert find_tool() == wheel
    toolkit = program(nowhere / "toolkit" / "bin")
    monkeypatch.setenv("CUDA_HOME", str(nowhere / "toolkit"))
    assert find_tool() == toolkit
    assert find_tool() != program(nowhere / "elsewhere")
    assert program(nowhere) == find_tool()


def test_asked_for_where_it_is_not_there_is_an_error_of_two_sentences(nowhere):
    with pytest.raises(InputError, match="needs compute-sanitizer, and there is none here.*pip install nvidia-cuda"):
        require_tool("cuda:0")


def test_asked_for_on_a_cpu_is_an_error_whatever_is_installed(nowhere):
    program(nowhere)
    assert require_tool("auto")
    with pytest.raises(InputError, match="a CPU runs none") as raised:
        require_tool("cpu")
    assert raised.value.exit_code == 2


@pytest.mark.parametrize("name", TOOLS)
def test_the_command_names_tool_log_and_target(name):
    words = command("/cuda/compute-sanitizer", name, Path("/private/log.txt"), ["python", "-m", "target", "folder"])
    assert words[:5] == ["/cuda/compute-sanitizer", "--tool", name, "--log-file", "/private/log.txt"]
    assert words[-4:] == ["python", "-m", "target", "folder"]


def test_only_initcheck_watches_the_libraries_kernels_since_it_must_see_what_they_write():
    for name in TOOLS:
        words = command("x", name, Path("log"), ["target"])
        assert ("--kernel-name-exclude" in words) == (name != "initcheck")


def excluded(symbol):
    return re.search(compute_sanitizer._NOT_CHECKED, symbol) is not None


@pytest.mark.parametrize(
    "symbol",
    ["_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi", "_ZN14at_cuda_detail3cub16DeviceScanKernelEv",
     "_ZN7cutlass7Kernel2I48cutlass_80_simt_sgemm_256x128_8x4_nn_align1EEvNT_6ParamsE", "ampere_sgemm_128x64_nn",
     "_ZN8cublasLt19splitKreduce_kernelILi32EEEv", "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
     "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8"],
)
def test_the_libraries_kernels_are_left_out_by_their_mangled_names(symbol):
    assert excluded(symbol)


@pytest.mark.parametrize(
    "symbol",
    ["_Z5tiledPKfS0_Pfi", "tril_matmul_kernel", "_Z19beats_cublas_kernelPf", "_ZN5tiles4tileEv", "sm90_gemm_kernel",
     "_ZN7cutlass7Kernel2INS_4gemm6kernel4GemmEEEvNT_6ParamsE", "_ZN6attend7forwardEv",
     "_ZN36_GLOBAL__N__424dd0fe_4_k_cu_99c9e5656hiddenEPf"],
)
def test_kernels_that_may_be_the_candidates_are_all_watched(symbol):
    assert not excluded(symbol)


@pytest.mark.skipif(find_tool() is None, reason="there is no compute-sanitizer here")
@pytest.mark.parametrize("name", TOOLS)
def test_the_tool_that_is_here_knows_every_option(name, tmp_path):
    words = command(find_tool(), name, tmp_path / "log.txt", ["--version"])
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert "unrecognised" not in ran.stdout + ran.stderr
    assert "Version" in ran.stdout, ran.stdout + ran.stderr


def test_the_doctor_names_it_with_a_gpu_and_says_what_is_lost_without_it(nowhere):
    from harness.cli.diagnosis import host
    from harness.cli.diagnosis.host import NOTE, OK

    assert host.sanitizer_finding(on_gpu=False) is None
    missing = host.sanitizer_finding(on_gpu=True)
    assert (missing.state, missing.name) == (NOTE, "compute-sanitizer")
    assert "--sanitize" in missing.text
    says = "echo 'NVIDIA (R) Compute Sanitizer'; echo 'Version 2025.3.1.0 (build 1)'"
    Path(program(nowhere)).write_text(f"#!/bin/sh\n{says}\n")
    found = host.sanitizer_finding(on_gpu=True)
    assert found.state == OK
    assert found.text.startswith("2025.3.1.0 (build 1) at ")


@pytest.mark.parametrize(("device", "words"), [("cpu", "a CPU runs none"), ("auto", "there is none here")])
@pytest.mark.processes
def test_a_run_that_asks_in_vain_ends_before_anything_is_built(device, words, tmp_path):
    words_typed = ["run.py", "problems/tril_matmul.yaml", "--device", device, "--sanitize", "--out", str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, *words_typed], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
    )
    if device == "auto" and find_tool() is not None:
        pytest.skip("there is a compute-sanitizer here")
    assert ran.returncode == 2
    assert words in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
