"""Devices beside each other, and the gates: what trips them and what never does."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.results.comparison import Compared, Gate, tripped
from harness.results.joined_runs import join
from harness.results.result_files import ResultFile

WRONG = {"status": "incorrect", "reason_code": "wrong_values", "reason": "C[0, 0] is off"}


@pytest.fixture
def timed(make_record):
    def make(name="tiled", speedup=1.0, half=0.0003, **changes):
        figures = {"speedup": speedup, "speedup_lo": speedup * (1 - half), "speedup_hi": speedup * (1 + half),
                   "time_us": 2000 / speedup, "uuid": "GPU-1", "source_hash": name, "candidate": name}
        if "status" in changes:
            figures |= {"speedup": None, "speedup_lo": None, "speedup_hi": None, "time_us": None}
        return make_record(**(figures | changes))

    return make


def compared(*runs, by="source", force=False):
    return Compared.of(join([ResultFile(Path(f"{n}.csv"), tuple(each)) for n, each in enumerate(runs)], by), force=force)


def test_devices_are_compared_by_speedups_places_and_means_over_what_all_have(timed):
    here = [timed("a", 4.0), timed("b", 2.0), timed("only_here", 9.0)]
    there = [timed("a", 2.0, uuid="GPU-2"), timed("b", 3.0, uuid="GPU-2"), timed("c", uuid="GPU-2", **WRONG)]
    [across] = compared(here, there).across
    assert across.shared == ("a", "b") and sorted(across.moved) == ["a", "b"]
    assert across.places == {0: {"a": 1, "b": 2}, 1: {"b": 1, "a": 2}}
    assert across.means[0].estimate == pytest.approx(8**0.5)
    assert across.against[1].estimate == pytest.approx((6 / 8) ** 0.5)


def test_of_several_runs_of_one_device_the_newest_stands_beside_the_others(timed):
    runs = [[timed(utc="2026-05-08T00:00:00Z")], [timed(utc="2026-05-01T00:00:00Z")], [timed(uuid="GPU-2")]]
    assert [each.runs for each in compared(*runs).across] == [(0, 2)]


def test_a_device_measured_by_another_method_is_left_out_and_said(timed):
    found = compared([timed(problem_hash="a")], [timed(problem_hash="b", uuid="GPU-2")])
    assert [each.runs for each in found.across] == [(0,)]
    [(_, one, other, mixed)] = found.refusals()
    assert (one, other, mixed) == (0, 1, (("problem_hash", "a", "b"),))
    assert compared([timed(problem_hash="a")], [timed(problem_hash="b", uuid="GPU-2")], force=True).refusals() == []


def test_a_cpu_beside_a_gpu_has_another_clock_by_nature(timed):
    cpu = {"device_kind": "cpu", "device_name": "AMD EPYC", "uuid": None}
    found = compared([timed(timer="native_events")], [timed(timer="monotonic", **cpu)])
    assert found.refusals() == [] and found.across[0].runs == (0, 1)


@pytest.mark.parametrize(
    ("text", "gate"),
    [("slower", Gate("slower")), ("slower:1%", Gate("slower", 0.01)), ("slower: 0.5 %", Gate("slower", 0.005)),
     ("incorrect", Gate("incorrect"))],
)
def test_gates_are_read_as_typed(text, gate):
    assert Gate.parse(text) == gate


@pytest.mark.parametrize("text", ["slowr", "slower:1", "slower:x%", "slower:-1%", "slower:100%", "incorrect:1%", ""])
def test_gates_that_mean_nothing_are_refused_with_what_to_type(text):
    with pytest.raises(InputError, match="--fail-on") as caught:
        Gate.parse(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("speedup", "half", "gate", "trips"),
    [
        (0.98, 0.001, "slower:1%", True),
        (0.985, 0.01, "slower:1%", False),  # its interval reaches to where 1 % is kept
        (0.995, 0.0003, "slower:1%", False),
        (0.995, 0.0003, "slower", True),
        (1.5, 0.001, "slower", False),
    ],
)
def test_slower_trips_only_by_the_whole_interval(timed, speedup, half, gate, trips):
    found = tripped(compared([timed()], [timed(speedup=speedup, half=half)]), [Gate.parse(gate)])
    assert bool(found) is trips


def test_slower_never_trips_by_less_than_the_control_was_off(timed):
    base = {"role": "baseline", "source_hash": None}
    controls = [timed("eager", 0.97, **base), timed("eager", **base)]
    runs = ([timed(), controls[0]], [timed(speedup=0.98), controls[1]])
    assert tripped(compared(*runs), [Gate("slower", 0.01)]) == []


def test_a_baseline_that_got_slower_trips_nothing(timed):
    base = {"role": "baseline", "source_hash": None}
    runs = ([timed(), timed("torch.compile", **base)], [timed(), timed("torch.compile", 0.5, **base)])
    assert tripped(compared(*runs), [Gate("slower")]) == []


def test_slower_with_nothing_to_judge_is_refused_and_not_passed(timed):
    with pytest.raises(InputError, match="nothing to judge"):
        tripped(compared([timed()], [timed(uuid="GPU-2")]), [Gate("slower")])


def test_incorrect_trips_for_what_is_newly_wrong_even_when_its_source_was_edited(timed):
    found = tripped(compared([timed()], [timed(source_hash="edited", **WRONG)]), [Gate("incorrect")])
    assert [(each.name, each.run, each.reason) for each in found] == [("tiled", 1, "incorrect: C[0, 0] is off")]
    assert len(tripped(compared([timed()], [timed(), timed("new", **WRONG)]), [Gate("incorrect")])) == 1
    assert len(tripped(compared([timed()], [timed(uuid="GPU-2", **WRONG)]), [Gate("incorrect")])) == 1


def test_what_was_wrong_before_is_no_news(timed):
    assert tripped(compared([timed(**WRONG)], [timed(**WRONG)]), [Gate("incorrect")]) == []
    assert tripped(compared([timed(**WRONG)], [timed(source_hash="edited", **WRONG)]), [Gate("incorrect")]) == []


def test_joined_by_name_an_edit_is_judged(timed):
    runs = ([timed(source_hash="old")], [timed(speedup=0.5, source_hash="new")])
    assert len(tripped(compared(*runs, by="name"), [Gate("slower")])) == 1
