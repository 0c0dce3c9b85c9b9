"""What a run says while it works: with a terminal, without one, and not at all."""

from __future__ import annotations

import io
import re
import time

import pytest

from harness.report.progress import LiveProgress, NullProgress, Progress, open_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _a_terminal_with_colours(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def lines_of(said: str) -> list[str]:
    """The plain lines, without the time of day that each begins with."""
    lines = [re.fullmatch(r"[0-2]\d:[0-5]\d:[0-5]\d\.\d (.*)", line) for line in said.splitlines()]
    assert all(lines), said
    return [line[1] for line in lines]


def scenario(progress, make_record) -> str:
    with progress:
        progress.note("NVIDIA H200, 16 cores")
        progress.status("tiled", "building")
        progress.status("tiled", "building")
        progress.status("naive", "building")
        progress.status("tiled", "checking [1/3]")
        progress.done(
            make_record(
                status="incorrect", reason_code="wrong_values", reason="wrong\nat [0, 1]", candidate="naive"
            )
        )
        progress.done(
            make_record(
                time_us=2711.0,
                baseline="eager",
                speedup=1.011,
                speedup_lo=1.009,
                speedup_hi=1.013,
                call="FASTER",
            )
        )
    return progress.stream.getvalue()


def test_without_a_terminal_there_are_plain_lines(make_record):
    progress = open_progress(io.StringIO())
    assert type(progress) is Progress
    assert lines_of(scenario(progress, make_record)) == [
        "NVIDIA H200, 16 cores",
        "tiled: building",
        "naive: building",
        "tiled: checking [1/3]",
        "naive: incorrect: wrong",
        "tiled: ok: 2.71 ms, 1.011× [1.009, 1.013] over eager, FASTER",
    ]


def test_with_a_terminal_the_finished_lines_stay_and_the_rest_is_wiped(make_record):
    progress = open_progress(Terminal())
    assert type(progress) is LiveProgress
    said = scenario(progress, make_record)
    assert "\x1b[32m" in said or "\x1b[31m" in said
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said)
    assert "tiled: ok: 2.71 ms, 1.011× [1.009, 1.013] over eager, FASTER" in plain
    assert "naive: incorrect: wrong" in plain


def test_no_color_leaves_the_terminal_without_colours(make_record, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    said = scenario(open_progress(Terminal()), make_record)
    assert "naive: incorrect" in said and not re.search(r"\x1b\[[0-9;]*3[0-7]m", said)


def test_a_dumb_terminal_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert type(open_progress(Terminal())) is Progress


def test_silent_says_nothing(make_record, capsys):
    progress = open_progress(silent=True)
    with progress:
        progress.status("tiled", "building")
        progress.note("something")
        progress.done(make_record())
    assert isinstance(progress, NullProgress) and capsys.readouterr() == ("", "")


def test_a_closed_stream_costs_the_line_and_not_the_run(make_record):
    stream = io.StringIO()
    progress = open_progress(stream)
    stream.close()
    progress.status("tiled", "building")
    progress.done(make_record())
    assert stream.closed


def test_where_several_devices_are_at_work_each_line_names_its_own(make_record):
    progress = open_progress(Terminal(), device="cuda:2")
    assert type(progress) is Progress
    with progress:
        progress.status("tiled", "timing")
        progress.done(make_record(status="incorrect", reason_code="wrong_values", reason="wrong", candidate="tiled"))
        progress.note("opening the device")
    assert lines_of(progress.stream.getvalue()) == [
        "cuda:2 tiled: timing", "cuda:2 tiled: incorrect: wrong", "cuda:2 opening the device",
    ]


def test_one_name_on_two_devices_is_two_live_lines(make_record):
    progress = LiveProgress(Terminal())
    with progress:
        for device in ("cuda:0", "cuda:1"):
            progress.status(f"{device} eager", "timing")
        progress.done(make_record(candidate="eager", role="baseline"), "cuda:1")
        assert list(progress._at_work) == ["cuda:0 eager"]


def test_what_a_device_was_at_that_is_gone_stands_on_no_screen(make_record):
    progress = LiveProgress(Terminal())
    with progress:
        for name in ("n1:0 victim", "n1:0 eager", "n1:01 other"):
            progress.status(name, "timing")
        progress.clear("n1:0")
        assert list(progress._at_work) == ["n1:01 other"]


def test_without_a_terminal_what_a_device_was_at_that_is_gone_is_waited_for_no_more(monkeypatch):
    monkeypatch.setattr("harness.report.progress.SILENCE_S", 0.05)
    with open_progress(io.StringIO()) as progress:
        progress.status("n1:0 victim", "timing")
        progress.clear("n1:0")
        before = progress.stream.getvalue().count("still at it")
        assert heard(progress, "still at it", before + 1).splitlines()[-1].endswith(" s")
        progress.status("n1:0 victim", "timing")  # by a judge that came after it
        assert progress.stream.getvalue().count("victim: timing") >= 2


def overall(progress, judged, devices=2):
    progress.overall(judged=judged, of=9, at_work=1, devices=devices, builds=3)


def test_with_a_terminal_one_line_stands_for_all_devices_and_none_for_a_single_one():
    progress = LiveProgress(Terminal())
    with progress:
        overall(progress, 0, devices=1)
        assert progress._bars.tasks == []
        for judged in range(4):
            overall(progress, judged)
        overall(progress, 4, devices=1)  # the other was lost
        assert [each.description for each in progress._bars.tasks] == ["4 of 9 judged, 1 of 1 devices at work, 3 builds waiting"]


def test_without_a_terminal_all_devices_have_a_line_now_and_then(monkeypatch):
    progress = Progress(io.StringIO())
    overall(progress, 1)
    assert progress.stream.getvalue() == ""
    overall(progress, 2)
    monkeypatch.setattr("harness.report.progress.OVERALL_S", 0.0)
    overall(progress, 2)  # it was not said before, and is though nothing has changed since
    overall(progress, 2)
    assert lines_of(progress.stream.getvalue()) == ["2 of 9 judged, 1 of 2 devices at work, 3 builds waiting"]


def heard(progress, what: str, times: int = 1) -> str:
    """What the progress has said once it has said `what` so often, which a busy machine may keep waiting."""
    until = time.monotonic() + 60
    while progress.stream.getvalue().count(what) < times and time.monotonic() < until:
        time.sleep(0.01)
    return progress.stream.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_silence_is_broken_with_what_is_waited_for(monkeypatch, stream):
    monkeypatch.setattr("harness.report.progress.SILENCE_S", 0.05)
    with open_progress(stream()) as progress:
        progress.note("building imphang (1 of 1)")
        assert re.search(r"still at it after \d+ s: building imphang \(1 of 1\)", heard(progress, "still at it"))


def test_what_moves_on_the_screen_is_not_said_again(monkeypatch, make_record):
    monkeypatch.setattr("harness.report.progress.SILENCE_S", 0.02)
    with open_progress(Terminal()) as progress:
        progress.status("tiled", "timing")
        time.sleep(0.1)  # a silence that was broken before that is none of its own
        before = progress.stream.getvalue().count("still at it")
        time.sleep(0.2)
        assert progress.stream.getvalue().count("still at it") == before
        progress.done(make_record(candidate="tiled"))
        said = heard(progress, "still at it", before + 1)
    assert "still at it" in said and "tiled: timing" not in said.rpartition("still at it")[2].splitlines()[0]


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_nothing_is_said_after_the_end(monkeypatch, stream):
    monkeypatch.setattr("harness.report.progress.SILENCE_S", 0.01)
    with open_progress(stream()) as progress:
        heard(progress, "still at it")
    said = progress.stream.getvalue()
    time.sleep(0.1)
    assert progress.stream.getvalue() == said


def test_who_says_nothing_breaks_no_silence(monkeypatch):
    monkeypatch.setattr("harness.report.progress.SILENCE_S", 0.01)
    progress = NullProgress()
    progress.stream = io.StringIO()
    with progress:
        progress.note("building")
        time.sleep(0.1)
    assert progress.stream.getvalue() == ""
