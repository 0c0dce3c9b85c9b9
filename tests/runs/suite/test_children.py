"""A child process for each problem: what it answers, and what its end becomes when it has no answer."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from harness.model.errors import HarnessError, InputError, NothingToRun
from harness.runs.suite.children import Child, ChildFailed, in_child

pytestmark = [pytest.mark.processes, pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")]


def raising(error: BaseException):
    def work():
        raise error

    return work


def test_a_plain_value_comes_back_from_another_process():
    assert in_child(lambda: [os.getpid() != os.getppid(), "x"]) == [True, "x"]
    assert in_child(os.getpid) != os.getpid()


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (InputError("mistyped", "p.yaml", 3), ChildFailed, "p.yaml:3: mistyped"),
        (HarnessError("broken"), ChildFailed, "broken"),
        (NothingToRun("no GPU"), NothingToRun, "no GPU"),
        (ValueError("what a\nreference raised"), ChildFailed, "ValueError: what a reference raised"),
        (SystemExit("it left"), ChildFailed, "SystemExit: it left"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value),
)
def test_what_is_raised_there_is_told_here_in_one_line(error, kind, said):
    with pytest.raises(kind) as caught:
        in_child(raising(error))
    assert str(caught.value) == said


def test_a_child_that_a_signal_ends_is_told_of_by_the_signals_name():
    with pytest.raises(ChildFailed, match="ended by SIGKILL"):
        in_child(lambda: os.kill(os.getpid(), signal.SIGKILL))


def test_a_child_that_leaves_without_a_word_is_told_of_by_its_code():
    with pytest.raises(ChildFailed, match="with code 7 and no result"):
        in_child(lambda: os._exit(7))


def test_what_a_child_changes_is_not_changed_here():
    in_child(lambda: sys.modules.update(nonsense_module=None))
    assert "nonsense_module" not in sys.modules


def test_a_child_that_is_interrupted_puts_its_things_away_and_is_interrupted_once(tmp_path):
    begun, away = tmp_path / "begun", tmp_path / "away"

    def work():
        begun.touch()
        try:
            time.sleep(60)
        finally:
            time.sleep(0.3)
            away.touch()

    child = Child(work)
    while not begun.exists():
        time.sleep(0.01)
    os.kill(child._process.pid, signal.SIGINT)  # of the terminal, to all of the foreground
    child.interrupt()
    assert away.exists() and child._process.exitcode == 0


def test_one_that_goes_on_answers_one_thing_after_the_other_and_then_ends():
    child = Child(lambda: iter([1, "two"]), goes_on=True)
    assert [child.answer(), child.answer()] == [1, "two"]
    child.join()


def test_what_is_raised_after_some_answers_ends_it_with_that_one():
    def work():
        yield "first"
        raise ValueError("second")

    child = Child(work, goes_on=True)
    assert child.answer() == "first"
    with pytest.raises(ChildFailed, match="ValueError: second"):
        child.answer()
