"""Which device a run gets, in words when it gets none, and the lock that keeps runs apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from filelock import Timeout

from harness.device.choose import check_device_name, device_lock, open_bench, why_no_gpu
from harness.errors import InputError, NothingToRun

REPOSITORY = Path(__file__).resolve().parents[2]
no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")


@pytest.mark.parametrize("name", ["auto", "cpu", "cuda", "cuda:0", "cuda:12"])
def test_names_of_devices_are_accepted(name):
    check_device_name(name)


@pytest.mark.parametrize("name", ["toaster", "cuda:", "cuda:x", "cuda:0 ", "gpu", "", "CUDA:0", "cuda:-1"])
def test_anything_else_is_refused_with_what_to_type(name):
    with pytest.raises(InputError, match="--device cpu"):
        check_device_name(name)


@no_gpu
@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:7"])
def test_a_gpu_that_is_not_there_is_nothing_to_run(name):
    with pytest.raises(NothingToRun) as caught:
        open_bench(name)
    assert name in str(caught.value)
    assert "--device cpu" in str(caught.value)
    assert caught.value.exit_code == 4


@pytest.mark.gpu
def test_a_gpu_beyond_the_last_is_nothing_to_run():
    with pytest.raises(NothingToRun, match="counted from cuda:0"):
        open_bench("cuda:99")


@no_gpu
def test_auto_takes_the_cpu_where_there_is_no_gpu():
    assert open_bench("auto").kind == "cpu"


def test_an_emptied_cuda_visible_devices_hides_every_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert open_bench("auto").kind == "cpu"


@pytest.mark.parametrize(("version", "said"), [(None, "built without CUDA"), ("13.0", "no usable NVIDIA GPU")])
def test_why_there_is_no_gpu_is_said_in_a_clause(monkeypatch, version, said):
    monkeypatch.setattr(torch.version, "cuda", version)
    assert said in why_no_gpu()


def test_one_device_has_one_lock_for_all_runs_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with device_lock("GPU-1"):
        program = (
            "import sys, tempfile\ntempfile.tempdir = sys.argv[1]\n"
            "from filelock import Timeout\nfrom harness.device.choose import device_lock\n"
            "for uuid in ('GPU-1', 'GPU-2', None):\n"
            "    try:\n        device_lock(uuid).acquire(timeout=0)\n        print('free')\n"
            "    except Timeout:\n        print('taken')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)], cwd=REPOSITORY, capture_output=True, text=True, check=True
        )
    assert done.stdout.split() == ["taken", "free", "free"]
    with device_lock("GPU-1").acquire(timeout=0):
        pass


def test_a_lock_that_is_held_says_so_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with device_lock("GPU-1"), pytest.raises(Timeout):
        device_lock("GPU-1").acquire(timeout=0)
