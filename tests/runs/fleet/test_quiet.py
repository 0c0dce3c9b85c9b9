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
        judge.far.send(("until quiet",))
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


def test_it_is_asked_only_while_something_is_compiled():
    near, far = Pipe()
    builds = DeliveredBuilds(near)
    builds.take({}, False)
    far.send("quiet")
    builds.wait_until_idle()
    assert far.recv() == ("until quiet",)
    assert builds.is_idle
    builds.wait_until_idle()
    assert not far.poll()
