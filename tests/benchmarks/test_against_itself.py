"""Eager against itself on several devices: who is given how much time, what is kept, and what ends it."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from dataclasses import replace

import pytest

from harness.model.errors import InputError

FIGURE = {"size": 64, "name": "eager", "ratio": 1.0, "lo": 0.999, "hi": 1.001, "time_us": 20.0, "call": "SAME", "seconds": 1.0}


@pytest.fixture
def benchmark(benchmark_named):
    return benchmark_named("against_itself")


@pytest.fixture
def asked(benchmark_named, tmp_path):
    flags = benchmark_named("timing_flags")
    return flags.Asked(
        utc="2026-01-01T00:00:00+00:00", command="python benchmarks/against_itself.py", device="a GPU", torch="2",
        devices=("cuda:0", "cuda:1"), is_cpu=False, config="default", processes=4, minutes=1.0, sizes=(64,),
        json=tmp_path / "figures.json",
    )


class Scripted:
    """A process that answers once another on the other device is asked as well, or dies after its first answer."""

    begun: list[dict] = []
    dies = frozenset()
    met = threading.Barrier(2, timeout=1)

    def __init__(self, kind, visible):
        self.visible, self.ended = visible, False
        Scripted.begun.append({"visible": visible})

    def ask(self, told):
        from timing_process import Died

        Scripted.begun.append({"asked": told})
        with contextlib.suppress(threading.BrokenBarrierError):  # after an interrupt the other may not come
            self.met.wait()
        yield {"note": "another run is timing on this GPU: waiting"}
        yield dict(FIGURE)
        if self.visible["CUDA_VISIBLE_DEVICES"] in self.dies:
            raise Died("it fell over")
        yield {"size": 64, "name": "eager", "failed": "unsure: noisy", "seconds": 2.0}

    def interrupt(self):
        self.ended = True

    end = interrupt


@pytest.fixture
def measured(benchmark, asked, monkeypatch):
    """`measured(…)`: the figures of a run with scripted processes; the changes are to what was asked."""

    def measure(dies=(), before=None, each=None, **changes):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.setattr(Scripted, "begun", [])
        monkeypatch.setattr(Scripted, "dies", frozenset(dies))
        monkeypatch.setattr(Scripted, "met", threading.Barrier(2, timeout=1))
        monkeypatch.setattr(benchmark, "Timed", Scripted)
        measuring = benchmark._Measuring(replace(asked, **changes), 2, before, each)
        measuring.run()
        return measuring.figures

    return measure


def test_each_device_has_its_processes_one_after_the_other_and_sees_no_other(measured):
    figures = measured()
    assert {each["device"] for each in figures} == {"cuda:0", "cuda:1"}
    assert {each["process"] for each in figures} == {0, 1, 2, 3} and len(figures) == 8
    assert {each["visible"]["CUDA_VISIBLE_DEVICES"] for each in Scripted.begun if "visible" in each} == {"0", "1"}
    told = [each["asked"] for each in Scripted.begun if "asked" in each]
    assert {each["device"] for each in told} == {"cuda:0"} and all(each["controls"] == [2] for each in told)


def test_the_first_control_of_each_process_and_size_is_marked(measured):
    assert [each["first"] for each in sorted(measured(processes=2), key=lambda each: each["process"])] == [True, False] * 2


def test_a_process_that_dies_costs_no_other(measured, capsys):
    figures = measured(dies={"1"})
    assert [each["device"] for each in figures].count("cuda:0") == 4
    assert [each["device"] for each in figures].count("cuda:1") == 2
    said = capsys.readouterr().err
    assert "died: it fell over" in said and "process 1: another run is timing" in said


def test_the_file_has_each_figure_as_it_comes_and_is_read_back(measured, benchmark, asked):
    figures = measured()
    body = benchmark.read(asked.json)
    assert body["figures"] == figures and body["controls"] == 2 and body["devices"] == ["cuda:0", "cuda:1"]
    assert "harness_hash" in body and "json" not in body


def test_a_run_that_goes_on_with_another_keeps_what_there_was(measured, benchmark, asked):
    first = measured()
    figures = measured(before=benchmark.read(asked.json), utc="2026-01-02T00:00:00+00:00", processes=2)
    assert figures[: len(first)] == first and len(figures) == len(first) + 4
    assert [each["run"] for each in figures] == [0] * len(first) + [1] * 4
    assert [each["first"] for each in figures[len(first) :]].count(True) == 2, "its processes have numbers of their own"
    body = benchmark.read(asked.json)
    assert body["figures"] == figures and body["utc"].startswith("2026-01-02")
    assert [(each["utc"][:10], each["processes"]) for each in body["earlier"]] == [("2026-01-01", 4)]


def test_a_run_that_goes_on_at_some_sizes_leaves_the_others_in_the_table(measured, benchmark, asked):
    measured(sizes=(64, 32))
    measured(before=benchmark.read(asked.json), sizes=(32, 16))
    assert benchmark.read(asked.json)["sizes"] == [64, 32, 16]


def test_a_size_with_enough_in_all_gets_no_more(measured, benchmark, asked):
    """The scripted process makes two of size 64, whatever it is asked for."""
    first = measured(processes=1, sizes=(64, 32))
    figures = measured(before=benchmark.read(asked.json), each=3, processes=1, sizes=(64, 32))
    (told,) = [each["asked"] for each in Scripted.begun if "asked" in each]
    assert told["sizes"] == [64, 32] and told["controls"] == [1, 2], "3 of each, and 2 by one process at most"
    assert len(figures) == len(first) + 2
    assert measured(before=benchmark.read(asked.json), each=4, sizes=(64,)) == figures, "there are four"


def test_what_is_missing_is_shared_out_to_the_processes_that_are_left(measured, benchmark, asked):
    measured(devices=("cuda:0",), processes=3, each=5)
    told = [each["asked"]["controls"] for each in Scripted.begun if "asked" in each]
    assert told == [[2], [2], [1]]


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"torch": "3"}, "torch was 2 there, and is 3 here"), ({"config": "quick"}, "config was"), ({"sizes": (32,)}, None)],
)
def test_only_what_is_the_same_is_added_to(measured, benchmark, asked, changed, said):
    measured()
    now = replace(asked, **changed)
    with pytest.raises(InputError, match=said) if said else contextlib.nullcontext():
        benchmark.check_same(benchmark.read(asked.json), now, asked.json)


def test_figures_of_another_state_of_this_software_are_not_added_to(measured, benchmark, asked, monkeypatch):
    measured()
    monkeypatch.setattr(benchmark, "software", lambda: "another")
    with pytest.raises(InputError, match="harness_hash was .* there, and is another here.*Begin one with --json"):
        benchmark.check_same(benchmark.read(asked.json), asked, asked.json)


def test_an_interrupt_leaves_what_there_is(measured, benchmark, monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(benchmark.time, "sleep", interrupted)
    assert len(measured()) <= 8
    assert "Traceback" not in capsys.readouterr().err


def test_devices_share_the_time_that_is_left(benchmark):
    import time

    turns = benchmark._Turns(5, 2, time.monotonic() + 60)
    numbers, seconds, left = zip(*(turns.take() for _ in range(5)))
    assert numbers == (0, 1, 2, 3, 4) and left == (5, 4, 3, 2, 1) and turns.take() is None
    assert seconds[0] == pytest.approx(20, abs=1), "the first device has three of five"
    assert seconds[-1] == pytest.approx(60, abs=1), "nothing was used meanwhile, and it is the last"


def test_without_time_only_the_first_of_each_device_is_begun(benchmark):
    turns = benchmark._Turns(10, 2, 0.0)
    assert [turns.take() is None for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--device", "toaster"], 2, "is no device"),
        (["--devices", "all", "--device", "cpu"], 2, "say two things"),
        (["--devices", "cuda:0,cpuu"], 2, "is no device"),
        (["--config", "defalt"], 2, "Did you mean 'default'"),
        (["--controls", "0"], 2, "--controls cannot be 0"),
        (["--each", "0"], 2, "--each cannot be 0"),
        (["--sizes", "64", "-1"], 2, "--sizes cannot be -1"),
        (["--json", "no-such-folder/x.json"], 2, "there is no folder"),
        (["--from", "README.md"], 2, "no file that --json"),
        (["--from", "no-such-file.json"], 2, "No such file"),
        (["--add", "no-such-file.json"], 2, "No such file"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(benchmark, benchmark_named, monkeypatch, capsys, words, code, said):
    monkeypatch.setattr(sys, "argv", ["against_itself.py", *words])
    with pytest.raises(SystemExit) as ended:
        benchmark_named("timing_flags").carried_out(benchmark.main)
    assert ended.value.code == code and said in capsys.readouterr().err


def test_the_command_that_is_kept_names_no_file_of_this_machine(benchmark_named):
    words = ["/x/benchmarks/against_itself.py", "--devices", "all", "--json", "/tmp/a b.json", "--minutes", "8"]
    kept = "python benchmarks/against_itself.py --devices all --minutes 8"
    command = benchmark_named("timing_flags")._command
    assert command(words) == kept == command([*words[:3], "--json=/tmp/x.json", *words[5:]])


def test_the_table_of_an_earlier_run_is_printed_again(measured, benchmark, asked, monkeypatch, capsys):
    measured()
    monkeypatch.setattr(sys, "argv", ["against_itself.py", "--from", str(asked.json)])
    benchmark.main()
    said = capsys.readouterr().out
    assert "On a GPU, 2026-01-01" in said and "4 of 8" in said and json.loads(asked.json.read_text())["torch"] == "2"
