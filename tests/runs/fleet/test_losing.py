"""A judge that dies costs no row: what it had in hand is judged again, once."""

from __future__ import annotations

import pytest
from fake_fleet import FakeReferee, judges_all

from harness.model.errors import HarnessError
from harness.model.verdict import ReasonCode, Status

NAMES = tuple("abcde")


def dies_with_one_in_hand(judge):
    """It judges its control, and is killed over the first candidate."""
    judge.judge(judge.next_entry())
    judge.next_entry()
    judge.killed()


def of_candidates(result):
    return {row.candidate: row for row in result.records if row.role == "candidate"}


def dies_over(name):
    """It judges what it is given, and is killed over that candidate."""
    def live(judge):
        while (entry := judge.next_entry()) is not None:
            if entry.name == name:
                judge.killed()
            judge.judge(entry)

    return live


def test_what_a_judge_had_in_hand_that_dies_is_judged_by_another_which_its_row_says(fleet_of):
    sound = FakeReferee("cuda:0", judges_all)
    fleet = fleet_of([sound, FakeReferee("cuda:1", dies_with_one_in_hand)], names=NAMES)
    [result] = fleet.run()
    rows = of_candidates(result)
    assert {name: row.status for name, row in rows.items()} == dict.fromkeys(NAMES, Status.OK)
    assert sorted(sound.judged) == sorted([*NAMES, "eager"])
    [told] = [row.warnings for row in rows.values() if row.warnings]
    assert "second try" in told and "cuda:1 ended by SIGKILL" in told
    assert any("cuda:1 ended by SIGKILL" in note for note in fleet.told.notes)
    assert fleet.told.cleared == ["cuda:1"]


def test_a_candidate_that_ends_two_judges_meets_no_third_and_costs_no_other_its_row(fleet_of):
    fleet = fleet_of([FakeReferee(f"cuda:{number}", dies_over("b")) for number in range(3)], names=NAMES)
    [result] = fleet.run()
    rows = of_candidates(result)
    lost = rows.pop("b")
    assert {name: row.status for name, row in rows.items()} == dict.fromkeys("acde", Status.OK)
    assert (lost.status, lost.reason_code, lost.blame) == (Status.SKIPPED, ReasonCode.DEVICE_LOST, "machine")
    assert "lost twice" in lost.reason and lost.time_us is None and lost.device_name == "Scripted"
    assert sum("SIGKILL" in note for note in fleet.told.notes) == 2


def test_a_judge_whose_device_fails_after_a_row_costs_that_row_nothing(fleet_of):
    def fails(judge):
        judge.judge(judge.next_entry())
        judge.judge(judge.next_entry())
        judge.far.send(("free", "it computes wrongly"))
        judge.far.recv()

    [result] = fleet_of([FakeReferee("cuda:0", judges_all), FakeReferee("cuda:1", fails)], names=NAMES).run()
    rows = [row.candidate for row in result.records if row.role == "candidate"]
    assert sorted(rows) == sorted(NAMES) and {row.status for row in result.records} == {Status.OK}


def test_the_table_of_one_model_stands_although_those_of_another_died(fleet_of):
    def dies(judge):
        judge.next_entry()
        judge.killed()

    [result] = fleet_of([FakeReferee("cuda:0", judges_all, "H100"), FakeReferee("cuda:1", dies, "A100")]).run()
    assert {row.device_name for row in result.records} == {"H100"} and len(result.records) == 3


def test_when_the_last_judge_dies_everything_left_has_its_row(fleet_of):
    fleet = fleet_of([FakeReferee(f"cuda:{number}", dies_with_one_in_hand) for number in range(2)], names=NAMES)
    [result] = fleet.run()
    rows = of_candidates(result)
    assert set(rows) == set(NAMES) and {row.status for row in rows.values()} == {Status.SKIPPED}
    assert {row.reason_code for row in rows.values()} == {ReasonCode.DEVICE_LOST}


@pytest.mark.parametrize("is_open", [True, False])
def test_judges_that_die_before_they_judged_anything_are_an_error_in_words(fleet_of, is_open):
    def dies(judge):
        if is_open:
            judge.next_entry()
        judge.killed()

    with pytest.raises(HarnessError, match="ended by SIGKILL"):
        fleet_of([FakeReferee(f"cuda:{number}", dies) for number in range(2)]).run()


def test_every_candidate_is_judged_once_and_each_judge_has_its_own_control(fleet_of):
    judges = [FakeReferee(f"cuda:{number}", judges_all) for number in range(3)]
    fleet = fleet_of(judges, names=NAMES)
    [result] = fleet.run()
    judged = [name for each in judges for name in each.judged]
    assert sorted(name for name in judged if name != "eager") == sorted(NAMES)
    assert len(of_candidates(result)) == len(NAMES)
    assert all(each.judged[:1] in ([], ["eager"]) for each in judges)
    assert fleet.told.totals[-1] | {"at_work": 0} == {
        "judged": len(NAMES), "of": len(NAMES), "at_work": 0, "devices": 3, "builds": 0,
    }
