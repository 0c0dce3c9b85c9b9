"""How many candidates a minute: the rows among what a run says, and the time between them."""

from __future__ import annotations

import pytest


@pytest.fixture
def several_gpus(benchmark_named):
    return benchmark_named("several_gpus")


@pytest.mark.parametrize(("line", "device"), [
    ("07:41:43.1 vm/7210:0 c002_reuses_buffer: ok: 2.72 ms, 1.001× [1.000, 1.003] over eager, UNSURE\n", "vm/7210:0 "),
    ("07:41:43.1 cuda:1 c002_reuses_buffer: unsure: its clock says\n", "cuda:1 "),
    ("07:41:43.1 c002_reuses_buffer: timed_out: no answer\n", None),
])
def test_a_row_is_told_with_its_device(line, device, several_gpus):
    row = several_gpus._ROW.match(several_gpus._CLOCK.sub("", line, count=1))
    assert row and row["device"] == device


@pytest.mark.parametrize("line", [
    "07:41:43.1 cuda:1 c002_reuses_buffer: checking\n", "07:41:43.1 eager: ok: 2.72 ms\n", "07:41:43.1 opening the device\n",
])
def test_a_stage_a_baseline_and_a_note_are_no_row(line, several_gpus):
    assert not several_gpus._ROW.match(several_gpus._CLOCK.sub("", line, count=1))


def test_the_time_from_row_to_row_is_that_of_one_device(several_gpus):
    rows = [("a", 0.0), ("b", 0.5), ("a", 2.0), ("b", 2.5), ("a", 4.0), ("b", 9.5)]
    assert several_gpus.each_s(rows) == 2.0
