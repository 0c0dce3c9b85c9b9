"""The doctor, mostly as a person meets it: the real command line, on this machine and on broken ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.build.toolchain import Toolchain
from harness.cli.diagnosis import gpu, host
from harness.cli.diagnosis.host import MISSING, NOTE, OK, Finding
from harness.cli.verbs import doctor
from harness.device.lock import device_lock
from harness.device.identity import Telemetry

REPOSITORY = Path(__file__).resolve().parents[3]
TORCH = Finding("PyTorch", OK, "2.13.0, built for CUDA 13.0")
GPU = Finding("cuda:0", OK, "NVIDIA H200, sm_90")


def run_doctor(*flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "run.py", "doctor", *flags], cwd=REPOSITORY, env={**os.environ, **environment},
        capture_output=True, text=True, timeout=300, check=False,
    )


def with_torch_that(does: str, folder: Path) -> dict[str, str]:
    (folder / "torch.py").write_text(does, encoding="utf-8")
    return {"PYTHONPATH": str(folder)}


def toolchain(**changes: object) -> Toolchain:
    parts = {
        "torch": "2.13.0", "torch_cuda": "13.0", "nvcc_path": "/cuda/bin/nvcc", "nvcc_version": "13.0",
        "cxx_path": "/usr/bin/g++", "cxx_version": "12.2", "python": "3.11.7", "host": "x86_64", "arch": "9.0a",
        "compile_only": True,
    }
    return Toolchain(**{**parts, **changes})


@pytest.mark.processes
def test_without_a_gpu_it_says_so_and_that_problems_run_on_the_cpu():
    ran = run_doctor(CUDA_VISIBLE_DEVICES="")
    assert ran.returncode == 0, ran.stderr
    for name in ("Python", "PyTorch", "CPU", "GPU", "nvcc", "C++ compiler", "ninja", "Triton", "sandbox", "cache"):
        assert any(line[9:].startswith(name) for line in ran.stdout.splitlines()), name
    assert "Problems run on the CPU here. Next: python run.py problems/tril_matmul.yaml" in ran.stdout
    assert ran.stderr == ""


@pytest.mark.processes
def test_json_holds_the_same_findings_and_where_a_run_would_go():
    ran = run_doctor("--json", CUDA_VISIBLE_DEVICES="")
    report = json.loads(ran.stdout)
    assert report["runs_on"] == "cpu"
    assert {each["state"] for each in report["findings"]} <= {OK, MISSING, NOTE}
    assert {"name", "state", "text", "hint"} == set(report["findings"][0])


@pytest.mark.processes
def test_a_torch_that_cannot_be_imported_is_named_and_the_exit_code_says_that_nothing_can_run(tmp_path):
    ran = run_doctor(**with_torch_that('raise ImportError("libtorch_cpu.so: cannot open")', tmp_path))
    assert ran.returncode == 4
    assert "cannot be imported: libtorch_cpu.so: cannot open" in ran.stdout
    assert "Nothing can run here" in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr


@pytest.mark.processes
def test_a_torch_that_dies_of_a_signal_costs_its_line_and_not_the_report(tmp_path):
    ran = run_doctor(**with_torch_that("import os\nos.kill(os.getpid(), 11)", tmp_path))
    assert ran.returncode == 4
    assert "ended with status -11" in ran.stdout
    assert "C++ compiler" in ran.stdout


@pytest.mark.processes
def test_a_driver_that_hangs_ends_with_the_trial_s_time(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "_TRIAL_LIMIT_S", 2)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with_torch_that("import time\ntime.sleep(60)", tmp_path)
    (finding,) = gpu.examine()
    assert (finding.name, finding.state) == ("PyTorch", MISSING)
    assert "did not end within 2 s" in finding.text


@pytest.mark.processes
def test_a_cache_that_cannot_be_written_names_the_variable_that_moves_it(tmp_path):
    (tmp_path / "file").write_text("")
    ran = run_doctor(CUDA_VISIBLE_DEVICES="", KERNEL_REFEREE_CACHE=str(tmp_path / "file" / "cache"))
    assert ran.returncode == 0
    assert "cannot be written" in ran.stdout
    assert "KERNEL_REFEREE_CACHE=" in ran.stdout


def test_without_compilers_each_is_missing_with_what_brings_it():
    bare = toolchain(nvcc_path=None, nvcc_version=None, cxx_path=None, cxx_version=None)
    nvcc, cxx = host.nvcc_finding(bare, on_gpu=False), host.cxx_finding(bare)
    assert (nvcc.state, cxx.state) == (MISSING, MISSING)
    assert "pip install nvidia-cuda-nvcc" in nvcc.hint
    assert "g++" in cxx.hint


def test_an_nvcc_of_another_cuda_than_torch_s_is_missing_on_a_gpu_only():
    other = toolchain(nvcc_version="12.4")
    assert host.nvcc_finding(other, on_gpu=True).state == MISSING
    assert "torch is built for CUDA 13.0" in host.nvcc_finding(other, on_gpu=True).text
    assert host.nvcc_finding(other, on_gpu=False).state == OK
    assert host.nvcc_finding(toolchain(nvcc_version="13.1"), on_gpu=True).state == OK


@pytest.mark.parametrize(("findings", "device"), [
    ([], None),
    ([Finding("PyTorch", MISSING, "cannot be imported")], None),
    ([TORCH], "cpu"),
    ([TORCH, GPU], "cuda"),
    ([TORCH, GPU, Finding("cuda:0 NVML", NOTE, "not available")], "cuda"),
    ([TORCH, GPU, Finding("cuda:0 CUDA IPC", MISSING, "failed")], "cpu"),
    ([TORCH, GPU, Finding("GPU trial", MISSING, "ended with status -11")], "cpu"),
])
def test_a_run_goes_where_everything_it_needs_is_there(findings, device, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert doctor.runs_on(findings) == device


def test_a_gpu_that_fails_its_trial_is_to_be_got_around_by_name():
    text = doctor.report_text([TORCH, GPU, Finding("cuda:0 CUDA IPC", MISSING, "failed", "as on WSL2")], 100, False)
    assert "→ as on WSL2" in text
    assert text.endswith("python run.py problems/tril_matmul.yaml --device cpu")


def test_long_findings_are_wrapped_below_their_own_column():
    text = doctor.report_text([Finding("cache", OK, "word " * 40)], 60, False)
    lines = [line for line in text.splitlines() if "word" in line]
    assert len(lines) > 2
    assert {line.index("word") for line in lines} == {lines[0].index("word")}
    assert max(map(len, lines)) <= 60


def test_a_trial_that_raises_is_a_finding_of_one_line():
    def trial() -> str:
        raise RuntimeError("cuIpcOpenMemHandle_v2 failed: CUDA_ERROR_INVALID_CONTEXT (201)\nand much more")

    finding = gpu._tried("cuda:0 CUDA IPC", trial, "hint")
    assert finding.text == "RuntimeError: cuIpcOpenMemHandle_v2 failed: CUDA_ERROR_INVALID_CONTEXT (201)"
    assert (finding.state, finding.hint) == (MISSING, "hint")


def test_what_nvml_refuses_is_named_and_never_shown_as_none():
    text = gpu._reading_text(Telemetry(sm_mhz=1980, watts=None, celsius=41.0, throttle=""))
    assert text == ", 1980 MHz, 41 °C, throttle: none; it does not give power"


def test_a_gpu_that_another_run_is_timing_on_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.device.lock.OF_THE_MACHINE", tmp_path)
    monkeypatch.setattr(gpu, "_trial_findings", lambda index, label: pytest.fail("the GPU was disturbed"))
    with device_lock("GPU-1234"):
        (finding,) = gpu._trials_alone(0, "cuda:0", "1234")
    assert finding.state == NOTE
    assert "another run is timing on it" in finding.text


def test_without_the_native_stopwatch_it_says_what_times_instead_and_what_is_missing():
    assert gpu._stopwatch_finding("cuda:0", "native_events").state == OK
    finding = gpu._stopwatch_finding("cuda:0", "torch_events")
    assert (finding.name, finding.state) == ("cuda:0 stopwatch", NOTE)
    assert "torch_events" in finding.text and "apt install g++" in finding.hint


@pytest.mark.gpu
def test_on_a_gpu_streams_are_held_and_memory_is_shared_with_a_worker_behind_the_sandbox():
    report = json.loads(run_doctor("--json").stdout)
    states = {each["name"]: each["state"] for each in report["findings"]}
    texts = {each["name"]: each["text"] for each in report["findings"]}
    for name in ("cuda:0", "cuda:0 opens", "cuda:0 stopwatch", "cuda:0 held streams", "cuda:0 CUDA IPC"):
        assert states[name] == OK, texts[name]
    assert report["runs_on"] == "cuda"


def test_ncu_is_looked_for_where_there_is_a_gpu_and_told_where_it_comes_from(monkeypatch, tmp_path):
    assert host.profiler_finding(on_gpu=False) is None
    monkeypatch.setattr(host.counters, "find_tool", lambda: None)
    missing = host.profiler_finding(on_gpu=True)
    assert missing.state == NOTE and "nsight-compute" in missing.hint
    program = tmp_path / "ncu"
    program.write_text("#!/bin/sh\necho 'Version 2025.3.1.0 (build 36398880)'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(host.counters, "find_tool", lambda: str(program))
    found = host.profiler_finding(on_gpu=True)
    assert found.state == OK and "2025.3.1.0" in found.text and str(program) in found.text


@pytest.mark.parametrize(("fault", "state"), [(None, OK), ("the system does not allow it", NOTE)])
def test_without_a_gpu_it_says_whether_the_judge_can_look_at_cores(monkeypatch, fault, state):
    assert host.core_watch_finding(on_gpu=True) is None
    monkeypatch.setattr(host.core_watch, "CoreWatch", lambda pids: SimpleNamespace(fault=fault, close=lambda: None))
    seen = host.core_watch_finding(on_gpu=False)
    assert seen.state == state
    assert fault is None or "PERFMON" in seen.hint
