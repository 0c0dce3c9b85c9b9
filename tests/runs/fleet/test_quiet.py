"""A judge whose clock is in doubt asks the parent, where the compilers are, to say when they have ended."""

from __future__ import annotations

import threading
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
    builds, was_paused = FakeBuilds(is_idle=False), []

    def is_lost(judge):
        judge.judge(judge.next_entry())
        judge.next_entry()
        judge.far.send(("until quiet", True))
        while not builds.is_paused:
            assert not judge.far.poll(0.01)
        was_paused.append(True)

    fleet_of([FakeReferee("cuda:0", is_lost, "H100"), FakeReferee("cuda:1", judges_all, "H100")], builds={"H100": builds}).run()
    assert was_paused and not builds.is_paused


def test_who_waits_for_the_end_of_all_builds_hears_of_no_pause(fleet_of):
    """A CPU judge begins when all is built, and compilers would take its cores."""
    builds, heard, doubt_is_over = FakeBuilds(is_idle=False), [], threading.Event()
    builds.has_ended = True

    def doubts(judge):
        judge.judge(judge.next_entry())
        entry = judge.next_entry()
        judge.far.send(("until quiet", True))
        heard.append(("who doubts", judge.far.recv()))
        heard.append(("who waits", is_waiting.wait(20) and waiter.poll(0.3)))
        builds.is_idle = True
        judge.judge(entry)
        doubt_is_over.set()
        judges_all(judge)

    is_waiting = threading.Event()
    waiter = None

    def waits(judge):
        nonlocal waiter
        judge.judge(judge.next_entry())
        judge.far.send(("until quiet", False))
        waiter = judge.far
        is_waiting.set()
        doubt_is_over.wait(20)
        heard.append(("who waits, then", judge.far.recv()))
        judges_all(judge)

    fleet_of([FakeReferee("cuda:0", doubts, "H100"), FakeReferee("cuda:1", waits, "H100")], builds={"H100": builds}).run()
    assert heard == [("who doubts", "quiet"), ("who waits", False), ("who waits, then", "quiet")]


def test_a_pause_is_not_told_as_the_end_of_all_builds(fleet_of):
    """Who took it for that would pause nothing for a doubt of its own, when builds have gone on."""
    builds, told = FakeBuilds(is_idle=False), []
    builds.has_ended = True

    def doubts(judge):
        judge.judge(judge.next_entry())
        entry = judge.next_entry()
        judge.far.send(("until quiet", True))
        assert judge.far.recv() == "quiet"
        is_paused.set()
        assert has_asked.wait(20)
        judge.judge(entry)
        judges_all(judge)

    is_paused, has_asked = threading.Event(), threading.Event()

    def asks(judge):
        judge.judge(judge.next_entry())
        assert is_paused.wait(20)
        judge.far.send(("free", None))
        told.append((judge.far.recv().quiet, builds.is_paused))
        has_asked.set()

    fleet_of([FakeReferee("cuda:0", doubts, "H100"), FakeReferee("cuda:1", asks, "H100")], builds={"H100": builds}).run()
    assert told == [(False, True)]


def test_it_is_asked_while_something_is_compiled_and_where_more_could_be_begun():
    near, far = Pipe()
    builds = DeliveredBuilds(near)
    builds.take({}, False)
    far.send("quiet")
    builds.wait_until_idle()
    assert far.recv() == ("until quiet", False)
    assert builds.is_idle
    builds.wait_until_idle()
    assert not far.poll()
    builds.is_paused = True
    far.send("quiet")
    builds.wait_until_idle()
    assert far.recv() == ("until quiet", True)
