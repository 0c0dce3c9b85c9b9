"""`Referees`: many candidates from a program, each judged once, whatever becomes of a device."""

from __future__ import annotations

import asyncio
import os
import signal
from itertools import islice

import pytest

from harness.model.errors import HarnessError, InputError
from harness.report.progress import NullProgress
from harness.runs.cluster.link import Link
from harness.runs.cluster.referees import Job, Referees

RIGHT = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return torch.tril(torch.matmul(A, B)){more}
"""

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


@pytest.fixture(scope="module")
def judges(nodes):
    with Referees(link=Link("cpu")) as opened:
        yield opened


@pytest.fixture
def job_of(request_for):
    problem = request_for([]).problem

    def of(more="", **words):
        return Job(problem, RIGHT.format(more=more), config="quick", **{"check_only": True, **words})

    return of


def test_of_equal_sources_one_is_judged_and_each_has_the_answer_under_its_name(judges, job_of):
    jobs = [job_of(name="a"), job_of(name="b"), job_of("[0]", name="wrong"), job_of(name="c")]
    found = {job.name: answer for job, answer in judges.map(jobs)}
    assert {name: each.record.status.value for name, each in found.items()} == {
        "a": "checked", "b": "checked", "c": "checked", "wrong": "incorrect",
    }
    assert {name: each.reward for name, each in found.items()} == {"a": 0.1, "b": 0.1, "c": 0.1, "wrong": 0.0}
    assert [found[name].record.candidate for name in "abc"] == ["a", "b", "c"]
    assert len({found[name].record.run_id for name in "abc"}) == 1
    assert found["wrong"].evidence is None or found["wrong"].evidence.recipe


def test_what_is_wrong_with_a_job_is_its_answer_and_nothing_else_waits_for_it(judges, job_of):
    jobs = [Job("no such problem", "x"), job_of("  # well")]
    kinds = {type(answer) for _, answer in judges.map(jobs)}
    assert InputError in kinds and len(kinds) == 2


def test_no_more_is_taken_than_keeps_the_devices_busy(judges, job_of):
    taken = []

    def endless():
        number = 0
        while True:
            taken.append(number)
            yield job_of(f"  # {number}")
            number += 1

    first = list(islice(judges.map(endless()), 2))
    assert len(first) == 2 and len(taken) <= 8 * 2 + 2


def test_asyncio_has_the_same(judges, job_of):
    async def both():
        one = await judges.evaluate_async(job_of().problem, RIGHT.format(more=""), config="quick", check_only=True)
        return one, [found async for found in judges.map_async([job_of(), job_of("[1]")])]

    one, several = asyncio.run(both())
    assert one.record.status.value == "checked"
    assert sorted(found.record.status.value for _, found in several) == ["checked", "incorrect"]


def test_a_timed_job_has_a_time_and_a_budget_ends_one(judges, job_of):
    found = {job.name: answer.record for job, answer in judges.map([
        job_of(name="timed", check_only=False), job_of("  # late", name="late", budget_s=0.0),
    ])}
    assert found["timed"].status.value == "ok" and found["timed"].time_us > 0 and found["timed"].speedup_lo
    assert (found["late"].status.value, found["late"].blame) == ("timed_out", "candidate")


def test_a_judge_that_dies_costs_the_job_in_its_hand_and_the_others_go_on(nodes, job_of):
    killed = []  # it is timed, so that it is still in hand when its stage is heard

    class Killing(NullProgress):
        def stage(self, candidate, text):
            if candidate.endswith(" victim") and not killed:
                place = next(each for each in opened._dispatcher._places._places.values() if candidate.startswith(each.seat.label))
                killed.append(pid_of(place))
                os.kill(killed[0], signal.SIGKILL)

    with Referees(link=Link("cpu"), progress=Killing()) as opened:
        jobs = [job_of(name="victim", check_only=False), *(job_of(f"  # {number}", name=f"c{number}") for number in range(3))]
        found = {job.name: answer.record for job, answer in opened.map(jobs)}
        assert opened.devices == 1
    assert (found["victim"].reason_code.value, found["victim"].blame) == ("device_lost", "machine")
    assert {found[f"c{number}"].status.value for number in range(3)} == {"checked"}


def test_when_all_are_gone_every_job_hears_of_it(nodes, job_of):
    class Killing(NullProgress):
        def stage(self, candidate, text):
            for place in opened._dispatcher._places._places.values():
                os.kill(pid_of(place), signal.SIGKILL)

    with Referees(link=Link("cpu"), progress=Killing()) as opened:
        jobs = [job_of(f"  # {number}", check_only=False) for number in range(5)]  # timed, so that the first is still in hand
        found = [answer for _, answer in opened.map(jobs)]
    assert len(found) == 5
    assert all(isinstance(each, HarnessError) or each.record.reason_code.value == "device_lost" for each in found)
    assert any(isinstance(each, HarnessError) for each in found)


def pid_of(place) -> int:
    """The process of the judge behind a place, which is one of this machine here."""
    import json

    import ray

    return json.loads(ray.get(place.actor.open.remote()))["pid"]
