"""One job times on a device at a time: who comes second waits, is told so, and builds meanwhile on a GPU."""

from __future__ import annotations

import os
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from harness import pipeline
from harness.candidate import find_candidates
from harness.device.choose import device_lock
from harness.places import REPOSITORY
from harness.problem import load_problem
from harness.report.progress import NullProgress
from harness.settings import load_settings
from harness.turn import Turn, alone_on

UUID = "GPU-0b5e55ed-turn"
TOLD = "is timing on NVIDIA H200 (GPU-0b5e55ed): waiting for it to end"


class Noted(NullProgress):
    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(autouse=True)
def own_locks(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("harness.device.choose.OF_THE_MACHINE", tmp_path)


@pytest.fixture
def other_run():
    """The lock as another run has it, to be released."""
    with device_lock(UUID) as lock:
        yield lock


def bench(kind: str = "cuda", uuid: str | None = UUID) -> SimpleNamespace:
    return SimpleNamespace(
        kind=kind, identity=SimpleNamespace(uuid=uuid, name="NVIDIA H200"), release_memory=lambda: None,
        settle=lambda: None,
    )


def test_a_free_device_is_taken_at_once_without_a_word_and_given_back_at_the_end():
    noted = Noted()
    with Turn.on(bench(), noted) as turn:
        turn.wait(lambda: False)
        with Turn.on(bench(), noted) as second:
            assert (turn.is_awaited, second.is_awaited) == (False, True)
    with Turn.on(bench(), noted) as third:
        assert not third.is_awaited
    assert noted.notes == []


def test_who_waits_is_told_for_what_and_when_everything_is_built_meanwhile(other_run):
    noted, looks = Noted(), []

    def is_built():
        looks.append(1)
        if len(looks) == 3:
            other_run.release()
        return len(looks) == 3

    with Turn.on(bench(), noted) as turn:
        turn.wait(is_built)
        assert not turn.is_awaited
    assert noted.notes == [
        f"another run (process {os.getpid()}) {TOLD}, and building meanwhile",
        "all candidates are built; still waiting for the other run on NVIDIA H200 (GPU-0b5e55ed)",
    ]


def test_with_nothing_to_build_only_the_waiting_is_told(other_run):
    noted = Noted()
    with Turn.on(bench(), noted) as turn:
        other_run.release()
        turn.wait(lambda: True)
    assert noted.notes == [f"another run {TOLD}"]


def test_what_is_idle_and_empty_is_measured_anew_after_a_wait_and_only_then(other_run):
    waited, settled = bench(), []
    waited.settle = lambda: settled.append(other_run.is_taken)
    with Turn.on(waited, Noted()) as turn:
        other_run.release()
        turn.wait()
        turn.wait()
    with Turn.on(waited, Noted()) as free:
        free.wait()
    assert settled == [False]


def test_the_cpu_is_no_gpu_and_has_a_lock_of_its_own(other_run):
    noted = Noted()
    with alone_on(bench("cpu", None), noted), Turn(None, "this CPU", noted) as second:
        assert second.is_awaited
    assert noted.notes == []


@pytest.mark.parametrize(("kind", "order"), [
    ("cuda", ["building, gently", "the other run ends", "judging"]),
    ("cpu", ["the other run ends", "building", "judging"]),
])
def test_a_run_builds_while_it_waits_for_a_gpu_and_on_a_cpu_only_then(kind, order, monkeypatch, tmp_path):
    """What builds and judges is replaced by a list of what was done."""
    done, lock = [], device_lock(UUID)

    def workshop(*_, gently):
        done.append("building, gently" if gently else "building")
        return nullcontext(SimpleNamespace(is_quiet=True, wait_for_builds=lambda tell: None))

    class OtherEnds(Noted):
        def note(self, text):
            if " is timing on " in text:
                done.append("the other run ends")
                lock.release()

    contest = SimpleNamespace(run=lambda candidates: done.append("judging"))
    monkeypatch.setattr(pipeline, "open_bench", lambda name: bench(kind))
    monkeypatch.setattr(pipeline, "Workshop", workshop)
    monkeypatch.setattr(pipeline, "Contest", lambda *_: contest)
    problem = load_problem(REPOSITORY / "problems" / "tril_matmul.yaml")
    candidates = find_candidates(problem.candidates_dir, ["tiled_shared"])
    request = pipeline.RunRequest(problem, candidates, "auto", load_settings("quick"), tmp_path)
    with lock:
        pipeline.run(request, OtherEnds())
    assert done == order
