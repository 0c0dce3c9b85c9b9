"""Which device a run gets, in words when it gets none, and the lock that keeps runs apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from harness.device.choice import check_device_name, check_device_names, devices_of, open_backend, why_no_gpu
from harness.device.lock import device_lock
from harness.model.errors import InputError, NothingToRun

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
        open_backend(name)
    assert name in str(caught.value)
    assert "--device cpu" in str(caught.value)
    assert caught.value.exit_code == 4


@pytest.mark.gpu
def test_a_gpu_beyond_the_last_is_nothing_to_run():
    with pytest.raises(NothingToRun, match="counted from cuda:0"):
        open_backend("cuda:99")


@no_gpu
def test_auto_takes_the_cpu_where_there_is_no_gpu():
    assert open_backend("auto").kind == "cpu"


def test_an_emptied_cuda_visible_devices_hides_every_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert open_backend("auto").kind == "cpu"


@pytest.mark.parametrize(("version", "said"), [(None, "built without CUDA"), ("13.0", "no usable NVIDIA GPU")])
def test_why_there_is_no_gpu_is_said_in_a_clause(monkeypatch, version, said):
    monkeypatch.setattr(torch.version, "cuda", version)
    assert said in why_no_gpu()


def test_what_pytorch_says_of_a_gpu_that_it_cannot_use_is_passed_on(monkeypatch):
    def refuse():
        raise RuntimeError("CUDA unknown error - this may be due to\n an incorrectly set up environment")

    monkeypatch.setattr("torch.version.cuda", "13.0")
    monkeypatch.setattr("torch.cuda.init", refuse)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert why_no_gpu().endswith("(CUDA unknown error - this may be due to an incorrectly set up environment)")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert why_no_gpu() == "CUDA_VISIBLE_DEVICES is set and empty, which hides every GPU"


@pytest.mark.processes
def test_one_device_has_one_lock_for_all_runs_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with device_lock("GPU-1"):
        program = (
            "import sys, tempfile\ntempfile.tempdir = sys.argv[1]\n"
            "from harness.device.lock import device_lock\n"
            "for uuid in ('GPU-1', 'GPU-2', None):\n"
            "    print('free' if device_lock(uuid).take() else 'taken')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)], cwd=REPOSITORY, capture_output=True, text=True, check=True
        )
    assert done.stdout.split() == ["taken", "free", "free"]
    assert device_lock("GPU-1").take()


def test_a_lock_that_is_held_says_so_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.device.lock.OF_THE_MACHINE", tmp_path)
    with device_lock("GPU-1"):
        assert not device_lock("GPU-1").take()


@pytest.mark.parametrize(("text", "names"), [
    ("all", ("all",)), ("cuda:0,cuda:2", ("cuda:0", "cuda:2")), ("cuda:1", ("cuda:1",)), ("cuda:0, cuda:1", ("cuda:0", "cuda:1")),
    ("cpu,cpu", ("cpu", "cpu")),
])
def test_several_devices_are_named_one_by_one_or_all_at_once(text, names):
    assert check_device_names(text) == names


@pytest.mark.parametrize("text", ["", "al", "cuda:0;cuda:1", "cuda", "all,cuda:0", "0,1", "cuda:0,", "cuda:0,cuda:0"])
def test_what_names_no_devices_is_refused_with_what_to_type(text):
    with pytest.raises(InputError, match="--devices all"):
        check_device_names(text)


def test_one_device_and_several_are_two_things():
    with pytest.raises(InputError, match="Leave one of the two out"):
        check_device_names("all", "cpu")


@no_gpu
def test_all_devices_of_a_machine_without_a_gpu_are_its_cpu_in_one_clear_sentence():
    told = []
    assert devices_of(("all",), told.append) == ("cpu",)
    assert len(told) == 1 and "means the CPU" in told[0]


def _with_gpus(monkeypatch, count):
    import harness.device.cuda

    monkeypatch.setattr(harness.device.cuda, "cuda_is_there", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def test_all_devices_are_every_gpu(monkeypatch):
    _with_gpus(monkeypatch, 3)
    assert devices_of(("all",), pytest.fail) == ("cuda:0", "cuda:1", "cuda:2")
    assert devices_of(("cuda:2", "cuda:0"), pytest.fail) == ("cuda:2", "cuda:0")


@pytest.mark.parametrize("count", [0, 2])
def test_one_gpu_of_several_that_is_not_there_is_nothing_to_run(monkeypatch, count):
    _with_gpus(monkeypatch, count)
    with pytest.raises(NothingToRun, match="there is no cuda:2"):
        devices_of(("cuda:0", "cuda:1", "cuda:2")[-1:], pytest.fail)
