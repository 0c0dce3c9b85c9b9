"""A judge whose clock is in doubt asks the parent, where the compilers are, to say when they have ended."""

from __future__ import annotations

from multiprocessing import Pipe

from fake_fleet import FakeBuilds, FakeReferee, judges_all

from harness.runs.fleet.device_judge import DeliveredBuilds


def test_it_is_answered_once_nothing_is_compiled_for_any_model(fleet_of):
    """The compilers of another model's candidates share the cores."""
    builds = {"H100": FakeBuilds(is_idle=False), "H200": FakeBuilds(is_idle=False)}
    heard = []

    def doubts(judge):
        judge.judge(judge.next_entry())
        judge.far.send(("until quiet", False))
        for model in builds:
            heard.append(judge.far.poll(0.3))
            builds[model].is_idle = True
        heard.append(judge.far.recv())
        judges_all(judge)
        heard.append(judge.far.poll(0.0))

    results = fleet_of(
        [FakeReferee("cuda:0", judges_all, "H100"), FakeReferee("cuda:1", doubts, "H200")], builds=builds,
    ).run()
    assert heard[:3] == [False, False, "quiet"], "neither while one is compiled for, nor before it is told"
    assert [sorted(row.candidate for row in result.records) for result in results] == [["eager", "mine", "other"]] * 2


def test_no_build_begins_from_when_a_clock_is_doubted_until_its_record_is_there(fleet_of):
    """Of thousands of candidates some are being built nearly to the end, and no GPU can wait for that."""
    builds, seen = FakeBuilds(is_idle=False), []

    def doubts(judge):
        judge.judge(judge.next_entry())
        entry = judge.next_entry()
        judge.far.send(("until quiet", True))
        seen.append((judge.far.poll(0.3), builds.is_paused))  # what had begun still runs
        builds.has_ended = True
        seen.append((judge.far.recv(), builds.is_paused))
        judge.judge(entry)
        following = judge.next_entry()
        seen.append(builds.is_paused)
        judge.judge(following)
        judges_all(judge)

    [result] = fleet_of([FakeReferee("cuda:0", doubts, "H100")], builds={"H100": builds}).run()
    assert seen == [(False, True), ("quiet", True), False]
    assert sorted(row.candidate for row in result.records) == ["eager", "mine", "other"]


def test_builds_go_on_where_the_judge_that_doubted_is_lost(fleet_of):
    builds = FakeBuilds(is_idle=False)

    def is_lost(judge):
        judge.judge(judge.next_entry())
        judge.next_entry()
        judge.far.send(("until quiet", True))
        while not builds.is_paused:
            assert not judge.far.poll(0.01)

    def judges_later(judge):
        judge.judge(judge.next_entry())
        while builds.is_paused or (entry := judge.next_entry()) is not None:
            judge.judge(entry)

    fleet_of([FakeReferee("cuda:0", is_lost, "H100"), FakeReferee("cuda:1", judges_later, "H100")], builds={"H100": builds}).run()
    assert not builds.is_paused


def test_it_is_asked_only_while_something_is_compiled():
    near, far = Pipe()
    builds = DeliveredBuilds(near)
    builds.take({}, False)
    far.send("quiet")
    builds.wait_until_idle()
    assert far.recv() == ("until quiet", False)
    assert builds.is_idle
    builds.wait_until_idle()
    assert not far.poll()
