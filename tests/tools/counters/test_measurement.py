"""One launch under a program in ncu's place, behind the sandbox: what becomes of its log, its silence and its end."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from harness.model.device_limits import CPU
from harness.model.errors import NothingToRun
from harness.report.progress import NullProgress
from harness.runs import profile
from harness.sandbox.environment import scrubbed
from harness.sandbox.sandbox_choice import strongest_sandbox
from harness.tools.counters.measurement import measure
from harness.tools.launch_files import SmallLaunch

pytestmark = pytest.mark.processes

RECORDED = Path(__file__).parent / "recorded" / "triton_ieee.txt"
RUNS_IT = """
import subprocess, sys
words = sys.argv[1:]
target = words[words.index("--metrics") + 2:]
raise SystemExit(subprocess.run(target).returncode)
"""


@pytest.fixture
def program(tmp_path):
    """`program(text)`: a program that runs this Python text with ncu's words in `sys.argv`."""
    def made(text: str) -> str:
        path = tmp_path / "ncu"
        # A first line of the system's takes no path with a blank: a shell's lines, which Python reads as one text.
        begin = f"#!/bin/sh\n''':'\nexec '{sys.executable}' \"$0\" \"$@\"\n'''\n"
        path.write_text(begin + text, encoding="utf-8")
        path.chmod(0o755)
        return str(path)
    return made


@pytest.mark.parametrize(("device", "said"), [("cpu", "--device cpu is none"), ("auto", "PyTorch")])
def test_without_a_gpu_it_says_why_there_are_no_counters(monkeypatch, device, said):
    monkeypatch.setattr(profile, "open_backend", lambda name: SimpleNamespace(limits=CPU))
    with pytest.raises(NothingToRun, match=f"reads a GPU's counters: .*{said}.*doctor"):
        profile.profile(None, None, device, None, NullProgress())


def measured(program: str, candidate: str, tmp_path: Path, limit_s: float = 60.0):
    path = tmp_path / "candidate.py"
    path.write_text(candidate, encoding="utf-8")
    launch = SmallLaunch(str(path), {}, 0, [], [torch.ones(4)], "cpu")
    return measure(program, launch, scrubbed(os.environ, {}), strongest_sandbox(), limit_s)


WELL = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


def test_what_it_wrote_is_read(program, tmp_path):
    text = RECORDED.read_text(encoding="utf-8")
    writes = f"import sys\nopen(sys.argv[sys.argv.index('--log-file') + 1], 'w').write({text!r})\n"
    read = measured(program(writes), WELL, tmp_path)
    assert [kernel.name for kernel in read.kernels] == ["tril_matmul_kernel"]


def test_one_that_writes_nothing_is_told_with_what_it_printed(program, tmp_path):
    read = measured(program("print('no such device')\nraise SystemExit(9)\n"), WELL, tmp_path)
    assert "wrote nothing (exited with status 9): no such device" in read.trouble


def test_one_that_does_not_end_is_ended(program, tmp_path):
    read = measured(program("import time\ntime.sleep(60)\n"), WELL, tmp_path, limit_s=1.5)
    assert "did not end within 1.5 s" in read.trouble


def test_what_the_candidate_raises_is_its_own_fault(program, tmp_path):
    raises = WELL.replace("return x", "raise ValueError('only on Tuesdays')")
    read = measured(program(RUNS_IT), raises, tmp_path)
    assert read.trouble == "the candidate raised ValueError: only on Tuesdays"


@pytest.mark.gpu
def test_a_real_call_on_a_gpu_is_counted_or_the_reason_is_told(tmp_path):
    from harness.tools.counters.ncu import find_tool

    found = find_tool()
    if found is None:
        pytest.skip("there is no ncu here")
    path = tmp_path / "candidate.py"
    path.write_text(WELL.replace("return x", "return x + 1"), encoding="utf-8")
    launch = SmallLaunch(str(path), {}, 0, [], [torch.ones(1 << 20)], "cuda:0")
    extra = {"CUDA_VISIBLE_DEVICES": "0", "NV_COMPUTE_PROFILER_LOCAL_CONNECTION_OVERRIDE": "uds"}
    read = measure(found, launch, scrubbed(os.environ, extra), strongest_sandbox(), 120.0)
    assert (read.trouble is None) == (len(read.kernels) == 1), read.trouble
