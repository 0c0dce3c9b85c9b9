"""`--watch`: a candidate's row comes as soon as its file is saved, mistakes wait to be mended, Ctrl-C is the end."""

from __future__ import annotations

import json
import queue
import signal
import threading
import time

import pytest

RIGHT = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return torch.tril(A @ B)
"""
WRONG = RIGHT.replace("torch.tril(A @ B)", "A @ B.t()")

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.alone]


class Watching:
    """A watch under way; `row()` waits for the next record that it prints."""

    def __init__(self, process):
        self.process, self._lines = process, queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)

    def row(self, within_s: float = 90) -> dict:
        return json.loads(self._lines.get(timeout=within_s))

    def is_silent(self, for_s: float) -> bool:
        time.sleep(for_s)
        return self._lines.empty()


@pytest.fixture
def bench(new_bench):
    return new_bench("watched")


def test_each_save_is_judged_once_and_only_what_was_saved(bench):
    folder = bench.candidates([])
    (folder / "first.py").write_text(RIGHT)
    watching = Watching(bench.judge(bench.folder / "tril_small.yaml", folder, "cpu", "--watch", "--json"))
    try:
        row = watching.row()
        assert row["candidate"] == "first"
        assert row["reason_code"] in ("", "noisy"), row["reason"]
        # It is eager itself: with threads of the judge's that spin on after its own steps it took three to six times as
        # long.
        assert row["reason_code"] or row["speedup"] > 0.4
        (folder / "second.py").write_text(WRONG)
        row = watching.row()
        assert (row["candidate"], row["status"], row["reason_code"]) == ("second", "incorrect", "wrong_values")
        (folder / "second.py").write_text(WRONG.replace("return A", "return A("))
        row = watching.row()
        assert (row["candidate"], row["status"], row["reason_code"]) == ("second", "build_failed", "syntax_error")
        assert "second.py:7" in row["reason"]
        assert watching.is_silent(1.5)
        (folder / "second.py").write_text(RIGHT + "\n# mended\n")
        row = watching.row()
        assert row["candidate"] == "second"
        assert row["reason_code"] in ("", "noisy"), row["reason"]
    finally:
        watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait(30) == 0
    assert "Traceback" not in watching.process.stderr.read()
    deadline = time.monotonic() + 5
    while bench.left_behind() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert bench.left_behind() == []


def test_a_candidate_that_takes_long_to_build_keeps_no_other_waiting_and_is_saved_again_at_any_time(new_bench):
    bench = new_bench("watched_slow")
    hangs = "import time\ntime.sleep(200)\n"
    folder = bench.candidates([])
    (folder / "a_slow.py").write_text(hangs + RIGHT)
    (folder / "b_broken.py").write_text("raise ValueError('of its own')\n" + RIGHT)
    watching = Watching(bench.judge(bench.folder / "tril_small.yaml", folder, "cpu", "--watch", "--json"))
    try:
        row = watching.row()
        assert (row["candidate"], row["reason_code"]) == ("b_broken", "import_error")
        (folder / "c_typo.py").write_text("def (")
        row = watching.row(30)
        assert (row["candidate"], row["reason_code"]) == ("c_typo", "syntax_error")
        (folder / "a_slow.py").write_text(RIGHT)
        row = watching.row(60)
        assert row["candidate"] == "a_slow"
        assert row["reason_code"] in ("", "noisy"), row["reason"]
        assert watching.is_silent(1.5)
    finally:
        watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait(30) == 0


@pytest.mark.parametrize(("words", "says"), [
    (["--strict"], "--strict goes with a run that ends"), (["--resume"], "--resume goes with a run that ends"),
])
def test_what_makes_no_sense_with_it_is_said(bench, words, says):
    end = bench.end(bench.judge(bench.folder / "tril_small.yaml", bench.candidates([]), "cpu", "--watch", *words))
    assert end.code == 2
    assert says in end.err
    assert len(end.err.splitlines()) == 1


def test_when_it_ends_it_says_where_all_rows_are(new_bench):
    bench = new_bench("watched_in_words")
    folder = bench.candidates([])
    (folder / "one.py").write_text(WRONG)
    process = bench.judge(bench.folder / "tril_small.yaml", folder, "cpu", "--watch")
    try:
        deadline = time.monotonic() + 60
        while not any("one" in path.read_text() for path in bench.folder.rglob("*.csv")) and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "all rows are in " in said and said.rstrip().endswith(".csv")
