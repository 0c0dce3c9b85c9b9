"""Which GPU a judge's process sees, and what its end is called."""

from __future__ import annotations

import os
import signal

import pytest

from harness.model.errors import HarnessError, InputError, NothingToRun
from harness.runs.fleet.judge_process import JudgeProcess, error_of, started, visible_alone


@pytest.mark.parametrize(("device", "visible", "alone"), [
    ("cuda:2", None, "2"), ("cuda:1", "4,6", "6"), ("cuda:0", "GPU-a, GPU-b", "GPU-a"), ("cuda:1", "GPU-a, GPU-b", "GPU-b"),
])
def test_a_judge_sees_its_own_gpu_alone_as_its_parent_counts(device, visible, alone):
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert visible_alone(device, environment) == {"CUDA_VISIBLE_DEVICES": alone}


def test_on_a_cpu_nothing_is_hidden():
    assert visible_alone("cpu", {"CUDA_VISIBLE_DEVICES": "1"}) == {}


@pytest.mark.parametrize("kind", [HarnessError, InputError, NothingToRun])
def test_an_error_keeps_its_exit_code_over_the_pipe(kind):
    error = error_of(kind.exit_code, "what was wrong")
    assert type(error) is kind and str(error) == "what was wrong"


@pytest.mark.processes
def test_a_process_that_was_killed_is_told_by_its_signal():
    judge = JudgeProcess("cpu")
    os.kill(judge.pid, signal.SIGKILL)
    assert judge.how_it_ended() == "ended by SIGKILL"
    judge.end()


@pytest.mark.processes
def test_one_that_is_interrupted_before_it_heard_anything_ends_quietly(capfd):
    judge = JudgeProcess("cpu")
    judge.interrupt()
    judge.end()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.processes
def test_one_whose_parent_hangs_up_ends_quietly(capfd):
    judge = JudgeProcess("cpu")
    judge.end()
    assert judge.how_it_ended() == "ended with code 0"
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.processes
def test_none_is_left_when_what_they_were_started_for_fails():
    with pytest.raises(KeyError), started(["cpu", "cpu"]) as judges:
        raise KeyError
    for judge in judges:
        with pytest.raises(ProcessLookupError):
            os.kill(judge.pid, 0)
