"""A judge that dies costs what it had in hand, and no more."""

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


def test_a_judge_that_dies_costs_the_candidate_in_its_hand_and_no_other(fleet_of):
    sound = FakeReferee("cuda:0", judges_all)
    fleet = fleet_of([sound, FakeReferee("cuda:1", dies_with_one_in_hand)], names=NAMES)
    [result] = fleet.run()
    rows = of_candidates(result)
    [victim] = set(NAMES) - set(sound.judged)
    assert {name: row.status for name, row in rows.items()} == dict.fromkeys(NAMES, Status.OK) | {victim: Status.SKIPPED}
    lost = rows[victim]
    assert lost.reason_code is ReasonCode.DEVICE_LOST and "SIGKILL" in lost.reason
    assert lost.time_us is None and lost.device_name == "Scripted" and lost.uuid == "GPU-cuda:1"
    assert any("cuda:1 ended by SIGKILL" in note for note in fleet.told.notes)


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
    [result] = fleet_of(judges, names=NAMES).run()
    judged = [name for each in judges for name in each.judged]
    assert sorted(name for name in judged if name != "eager") == sorted(NAMES)
    assert len(of_candidates(result)) == len(NAMES)
    assert all(each.judged[:1] in ([], ["eager"]) for each in judges)
