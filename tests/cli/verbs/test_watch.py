"""What a watch does with what is saved while it is judging: nothing is lost, and nothing is judged twice."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from harness.cli.verbs.watch import _Watch
from harness.model.errors import HarnessError
from harness.model.verdict import ReasonCode
from harness.runs.saved_files import SavedFiles


class Queue:
    """Judges the first of its candidates; `meanwhile` is done while the one of that name and text is judged."""

    def __init__(self, meanwhile):
        self.left, self.judged, self.meanwhile = [], [], meanwhile

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def add(self, candidates):
        paths = {each.path for each in candidates}
        self.left = [each for each in self.left if each.path not in paths] + candidates

    def judge_next(self, within_s):
        candidate = self.left.pop(0)
        text = candidate.source.split()[-1]
        self.judged.append((candidate.name, text))
        code = self.meanwhile.pop((candidate.name, text), lambda: None)()
        return SimpleNamespace(record=SimpleNamespace(candidate=candidate.name, reason_code=code or ReasonCode.NONE))


class Board:
    def __init__(self):
        self.shown = []

    def add(self, record, present, *, is_last):
        self.shown.append(f"{record.candidate}, and the table" if is_last else record.candidate)

    def complete(self, present):
        self.shown.append("over")


@pytest.fixture
def watch(tmp_path):
    """A watch over the files that `watch.save(name, text)` writes; `watch.meanwhile` as in `Queue`."""
    saved, meanwhile, said = SavedFiles([tmp_path], lambda: sorted(tmp_path.glob("*.py"))), {}, []
    queue, board = Queue(meanwhile), Board()
    watch = _Watch(saved, lambda: queue, board, said.append)
    watch.queue, watch.board, watch.meanwhile, watch.said, watch.times = queue, board, meanwhile, said, iter(range(99))

    def save(name, text):
        path = tmp_path / f"{name}.py"
        path.write_text(f"class ModelNew: ...  # {text}\n")
        os.utime(path, (1000 + next(watch.times),) * 2)

    def look():
        saved.changed()
        return saved.changed()

    watch.save, watch.look = save, look
    for name in ("a", "b"):
        save(name, "first")
    return watch


def test_each_row_is_shown_when_it_is_there_and_the_last_with_the_table(watch):
    watch.judge(watch.look())
    assert watch.board.shown == ["a", "b, and the table", "over"]
    assert watch.look() == []


def test_what_is_saved_while_another_is_judged_is_judged_in_the_same_pass_and_its_old_text_never(watch):
    watch.meanwhile["a", "first"] = lambda: watch.save("b", "second")
    watch.judge(watch.look())
    assert watch.queue.judged == [("a", "first"), ("b", "second")]
    assert watch.look() == []


def test_what_is_saved_again_after_its_row_is_judged_again_in_the_same_pass(watch):
    watch.meanwhile["b", "first"] = lambda: watch.save("a", "second")
    watch.judge(watch.look())
    assert watch.queue.judged == [("a", "first"), ("b", "first"), ("a", "second")]


def test_a_row_of_a_file_that_was_saved_under_way_is_not_shown_and_comes_again(watch):
    watch.meanwhile["a", "first"] = lambda: ReasonCode.SAVED_MEANWHILE
    watch.judge(watch.look())
    assert watch.queue.judged == [("a", "first"), ("b", "first"), ("a", "first")]
    assert watch.board.shown == ["b", "a, and the table", "over"]


def test_a_fault_of_the_machine_is_said_and_costs_the_others_nothing(watch):
    def refuses():
        raise HarnessError("the device is gone")

    watch.meanwhile["a", "first"] = refuses
    watch.judge(watch.look())
    assert watch.said == ["the device is gone"]
    assert watch.board.shown == ["b, and the table", "over"]
