"""`Referees` with real judges: verdicts, rewards, budgets, asyncio, and a judge that is killed. Who is given what is
`test_dispatch`'s.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading

import pytest

from harness.runs.cluster.link import Link
from harness.runs.cluster.referees import Job, Referees
from harness.sandbox.locks import Lock

RIGHT = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return torch.tril(torch.matmul(A, B)){more}
"""

# Be the machine quiet or not.
TIMED = ("ok", "unsure")

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]


@pytest.fixture(scope="module")
def told(nodes):
    from listening import Listening

    return Listening()


@pytest.fixture(scope="module")
def judges(nodes, told):
    with Referees(link=Link("cpu", "A100"), progress=told) as opened:  # one judge
        yield opened


@pytest.fixture
def job_of(request_for):
    problem = request_for([]).problem

    def of(more="", **words):
        return Job(problem, RIGHT.format(more=more), config="quick", **{"check_only": True, **words})

    return of


def test_each_job_has_its_verdict_its_blame_and_its_reward(judges, job_of):
    found = {job.name: answer for job, answer in judges.map([
        job_of(name="right"), job_of("[0]", name="wrong"), job_of(name="timed", check_only=False),
        job_of("  # late", name="late", budget_s=0.0),
    ])}
    records = {name: each.record for name, each in found.items()}
    timed = records.pop("timed")
    assert {name: (each.status.value, each.blame) for name, each in records.items()} == {
        "right": ("checked", None), "wrong": ("incorrect", "candidate"), "late": ("timed_out", "candidate"),
    }
    assert {name: found[name].reward for name in records} == {"right": 0.1, "wrong": 0.0, "late": 0.0}
    if (timed.status.value, timed.blame) != ("unsure", "machine"):  # as on a machine that others keep busy
        assert (timed.status.value, timed.blame) == ("ok", None)
        assert timed.time_us > 0 and timed.speedup_lo and 0.1 <= found["timed"].reward < 1.0
    assert found["wrong"].evidence is None or found["wrong"].evidence.recipe


def test_asyncio_has_the_same(judges, job_of):
    async def both():
        one = await judges.evaluate_async(job_of().problem, RIGHT.format(more=""), config="quick", check_only=True)
        return one, [found async for found in judges.map_async([job_of(), job_of("[1]")])]

    one, several = asyncio.run(both())
    assert one.record.status.value == "checked"
    assert sorted(found.record.status.value for _, found in several) == ["checked", "incorrect"]


def test_a_job_whose_judge_is_killed_is_judged_again(judges, job_of, told, monkeypatch):
    killed = []  # it is timed, so that it is still in hand when its stage is heard

    def kill(candidate, text):
        if candidate.endswith(" victim") and not killed:
            place = next(each for each in judges._dispatcher._places._places.values() if candidate.startswith(each.seat.label))
            killed.append(pid_of(place))
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(told, "_when", kill)
    jobs = [job_of(name="victim", check_only=False), *(job_of(f"  # {number}", name=f"c{number}") for number in range(3))]
    found = {job.name: answer.record for job, answer in judges.map(jobs)}
    assert killed and found["victim"].status.value in TIMED, found["victim"].reason
    assert "SIGKILL" in found["victim"].warnings
    assert {found[f"c{number}"].status.value for number in range(3)} == {"checked"}


def test_a_device_that_another_run_has_is_waited_for(nodes, judges, job_of, told, monkeypatch):
    waits = threading.Event()
    monkeypatch.setattr(told, "note", lambda text: waits.set() if "is timing on this CPU: waiting" in text else None)
    with Lock(nodes.folder / "node2" / "kernel-referee-locks" / "cpu.lock", for_all=True):
        answer = judges.submit(job_of("  # waits", check_only=False))
        assert waits.wait(60) and not answer.done()
    record = answer.result(120).record
    assert record.status.value in TIMED, record.reason


def pid_of(place) -> int:
    """The process of the judge behind a place, which is one of this machine here."""
    import ray

    return json.loads(ray.get(place.actor.open.remote()))["pid"]
