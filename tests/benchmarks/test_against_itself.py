"""The table of eager against itself: each figure from the controls, beside its target, with its n."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from harness.problem import REPOSITORY


@pytest.fixture(scope="module")
def benchmark():
    path = REPOSITORY / "benchmarks" / "against_itself.py"
    spec = importlib.util.spec_from_file_location("against_itself", path)
    module = sys.modules["against_itself"] = importlib.util.module_from_spec(spec)  # where dataclasses look
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


def figure(process: int, ratio: float, *, first=False, time_us=42.0, call="SAME", half=0.002, seconds=1.5):
    return {
        "size": 768, "process": process, "first": first, "ratio": ratio, "lo": ratio - half, "hi": ratio + half,
        "time_us": time_us, "call": call, "seconds": 9.0 if first else seconds,
    }


CONTROLS = [
    figure(0, 1.001, first=True), figure(0, 1.000), figure(1, 0.999, first=True), figure(1, 1.004, call="FASTER"),
    {"size": 768, "process": 1, "first": False, "failed": "unsure: noisy", "seconds": 3.0},
]


def test_each_figure_stands_beside_the_target_of_its_class(benchmark):
    cells = dict(zip(benchmark.HEADS, benchmark.row_of(CONTROLS, 768, True)))
    assert cells["pair"] == "M=768, 42.0 µs" and cells["n"] == "4 of 5"
    assert cells["p95 distance from 1"] == "0.400 % (0.250 %) !"
    # of the first controls 1.001 and 0.999, of the second 1.000 and 1.004
    assert cells["largest / smallest − 1"] == "0.300 %, at most 0.400 %, 2 processes (0.400 %)"
    assert cells["FASTER or SLOWER"].startswith("1 of 4") and cells["FASTER or SLOWER"].endswith("(2 of 200) !")
    assert cells["hold 1"] == "3 of 4 (93 %) !"
    assert cells["s a control"] == "1.5 (2)", "the first of a process has its start before it and does not count"


def test_intervals_are_held_against_the_mean_of_all_as_well(benchmark):
    off = [figure(0, 1.01, first=True), figure(0, 1.0102), figure(1, 1.0098, first=True), figure(1, 1.01)]
    cells = dict(zip(benchmark.HEADS, benchmark.row_of(off, 768, True)))
    assert cells["hold the mean of all"] == "4 of 4 (93 %)" and cells["hold 1"] == "0 of 4 (93 %) !"


@pytest.mark.parametrize(("time_us", "p95"), [(2700.0, 0.0005), (1000.0, 0.0005), (356.0, 0.001), (16.0, 0.0025)])
def test_a_class_of_durations_has_its_own_targets(benchmark, time_us, p95):
    assert benchmark.target_for(time_us).p95 == p95


def test_a_cpu_has_no_targets_and_a_size_without_figures_its_reason(benchmark):
    assert benchmark.row_of(CONTROLS, 768, False)[2] == "0.400 %"
    failed = benchmark.row_of(CONTROLS[-1:], 768, True)
    assert failed[0] == "M=768" and failed[-1] == "unsure: noisy" and len(failed) == len(benchmark.HEADS)
