"""One job times on a device at a time: who comes second builds meanwhile, waits, and is told for whom since when."""

from __future__ import annotations

import os
import pwd
import re
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from harness.device.lock import DeviceLock, alone_on, device_lock
from harness.judge import run
from harness.model.candidate import find_candidates
from harness.model.device_limits import limits_of
from harness.model.errors import DeviceBusy
from harness.model.paths import REPOSITORY
from harness.model.problem import load_problem
from harness.model.settings import load_settings
from harness.report.progress import NullProgress

UUID = "GPU-0b5e55ed-turn"
TOLD = "is timing on NVIDIA H200 (GPU-0b5e55ed): waiting for it to end"
SINCE = r"since \d\d:\d\d:\d\d"


class Noted(NullProgress):
    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(autouse=True)
def own_locks(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("harness.device.lock.OF_THE_MACHINE", tmp_path)


@pytest.fixture
def other_run():
    """The lock as another run has it, to be released."""
    with device_lock(UUID) as lock:
        yield lock


def backend(kind: str = "cuda", uuid: str | None = UUID) -> SimpleNamespace:
    return SimpleNamespace(
        kind=kind, limits=limits_of(kind), identity=SimpleNamespace(uuid=uuid, name="NVIDIA H200"), release_memory=lambda: None,
        settle=lambda: None,
    )


def test_a_free_device_is_taken_at_once_without_a_word_and_given_back_at_the_end():
    noted = Noted()
    first, second = DeviceLock.on(backend(), noted), DeviceLock.on(backend(), noted)
    with first.held(lambda: False):
        assert (first.is_another_runs, second.is_another_runs) == (False, True)
    assert not second.is_another_runs
    assert noted.notes == []


def test_nothing_is_held_before_it_is_asked_for():
    first, second = DeviceLock.on(backend(), Noted()), DeviceLock.on(backend(), Noted())
    assert not first.is_another_runs and not second.is_another_runs


def test_who_waits_is_told_for_whom_since_when_and_when_everything_is_built_meanwhile(other_run):
    noted, looks = Noted(), []

    def is_built():
        looks.append(1)
        if len(looks) == 3:
            other_run.release()
        return len(looks) == 3

    its_lock = DeviceLock.on(backend(), noted)
    with its_lock.held(is_built):
        assert not its_lock.is_another_runs
    first, second = noted.notes
    user = pwd.getpwuid(os.getuid()).pw_name
    known = rf"process {os.getpid()} of {user}: .*python.*, {SINCE}"
    assert re.fullmatch(rf"another run \({known}\) {re.escape(TOLD)}, and building meanwhile", first)
    assert second == "all candidates are built; still waiting for the other run on NVIDIA H200 (GPU-0b5e55ed)"


def test_of_a_run_that_has_just_ended_only_the_time_is_told(other_run, monkeypatch):
    noted, lock = Noted(), type(other_run)
    takes = iter([False, True])
    monkeypatch.setattr(lock, "holder", lambda self: None)
    monkeypatch.setattr(lock, "take", lambda self, timeout_s=0.0: next(takes))
    with DeviceLock.on(backend(), noted).held(lambda: True):
        pass
    assert re.fullmatch(rf"another run \({SINCE}\) {re.escape(TOLD)}", noted.notes[0])


def test_who_waits_is_told_when_another_run_was_sooner(other_run, monkeypatch):
    noted, lock = Noted(), type(other_run)
    takes, holders = iter([False, False, False, False, True]), iter([11, 11, 11, None, 22, 22])
    monkeypatch.setattr(lock, "holder", lambda self: next(holders))
    monkeypatch.setattr(lock, "take", lambda self, timeout_s=0.0: next(takes))
    with DeviceLock.on(backend(), noted).held():
        pass
    first, second = noted.notes
    assert first.startswith("another run (process 11") and second.startswith("another run (process 22")
    assert second.endswith("is timing on NVIDIA H200 (GPU-0b5e55ed) now: waiting for it to end")


@pytest.mark.parametrize("wait_s", [0.0, 0.1])
def test_who_was_told_how_long_to_wait_gives_up_with_the_exit_code_of_what_could_not_run(other_run, wait_s):
    with pytest.raises(DeviceBusy, match=rf"still has NVIDIA H200 .* after {wait_s:g} s\. .*--wait SECONDS") as gave_up:
        with DeviceLock.on(backend(), Noted(), wait_s).held():
            pytest.fail("it was not free")
    assert gave_up.value.exit_code == 4


def test_what_is_idle_and_empty_is_measured_anew_after_a_wait_and_only_then(other_run):
    waited, settled = backend(), []
    waited.settle = lambda: settled.append(other_run.is_taken)

    class OtherEnds(Noted):
        def note(self, text):
            other_run.release()

    its_lock = DeviceLock.on(waited, OtherEnds())
    for _ in range(2):
        with its_lock.held():
            pass
    assert settled == [False]


def test_the_cpu_is_no_gpu_and_has_a_lock_of_its_own(other_run):
    noted = Noted()
    with alone_on(backend("cpu", None), noted):
        assert DeviceLock(None, "this CPU", noted).is_another_runs
    assert noted.notes == []


@pytest.mark.processes
@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_a_run_builds_gently_while_it_waits_for_another(kind, monkeypatch, tmp_path):
    """What builds and judges is replaced by a list of what was done."""
    done, lock = [], device_lock(UUID)

    def build_pool(*_, gently):
        done.append("building, gently" if gently else "building")
        return nullcontext(SimpleNamespace(is_quiet=True, wait_for_builds=lambda tell: None))

    class OtherEnds(Noted):
        def note(self, text):
            if " is timing on " in text:
                done.append("the other run ends")
                lock.release()

    device_run = SimpleNamespace(run=lambda candidates: done.append("judging"))
    monkeypatch.setattr(run, "open_backend", lambda name: backend(kind))
    monkeypatch.setattr(run, "BuildPool", build_pool)
    monkeypatch.setattr(run, "DeviceRun", lambda *_: device_run)
    problem = load_problem(REPOSITORY / "problems" / "tril_matmul.yaml")
    candidates = find_candidates(problem.candidates_dir, ["tiled_shared"])
    request = run.RunRequest(problem, candidates, "auto", load_settings("quick"), tmp_path)
    with lock:
        run.run(request, OtherEnds())
    assert done == ["building, gently", "the other run ends", "judging"]
